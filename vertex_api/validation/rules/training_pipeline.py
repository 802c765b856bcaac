"""Rules for a TrainingPipeline, except for the job that it runs."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.validation.rules import common_fields, input_data, uploaded_model
from vertex_api.validation.rules.violation_type import Violation


def find_pipeline_violations_except_job(pipeline: Mapping[str, Any]) -> Iterator[Violation]:
    """Find violations of the rules for a pipeline, its data and its model (discovery document, TrainingPipeline)."""
    yield from common_fields.find_common_field_violations(pipeline)
    for name in ("modelId", "parentModel"):
        if pipeline.get(name) and "modelToUpload" not in pipeline:
            yield (name,), "says where a model goes, but there is no modelToUpload"
    yield from uploaded_model.find_model_id_violations(pipeline)
    if "modelToUpload" in pipeline:
        yield from uploaded_model.find_model_violations(pipeline["modelToUpload"], ("modelToUpload",))
    if "inputDataConfig" in pipeline:
        yield from input_data.find_input_data_violations(pipeline["inputDataConfig"], ("inputDataConfig",))
