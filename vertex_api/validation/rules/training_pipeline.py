"""Rules for a TrainingPipeline, except for the job that it runs."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.validation.rules import common_fields, input_data, uploaded_model
from vertex_api.validation.rules.violation import Violation


def find_pipeline_violations(spec: Mapping[str, Any]) -> Iterator[Violation]:
    """Find violations of the rules for a pipeline, its data and its model (discovery document, TrainingPipeline)."""
    yield from common_fields.find_resource_violations(spec)
    for name in ("modelId", "parentModel"):
        if spec.get(name) and "modelToUpload" not in spec:
            yield (name,), "says where a model goes, but there is no modelToUpload"
    yield from uploaded_model.find_model_id_violations(spec)
    if "modelToUpload" in spec:
        yield from uploaded_model.find_model_violations(spec["modelToUpload"], ("modelToUpload",))
    if "inputDataConfig" in spec:
        yield from input_data.find_input_data_violations(spec["inputDataConfig"], ("inputDataConfig",))
