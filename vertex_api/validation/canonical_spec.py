"""CanonicalSpec: a job or training pipeline in canonical form, and the two ways to get one.

Specs are validated once at each border: where declarations are read, where a program creates a resource, where Pulumi's
engine calls a provider. Everything behind a border takes a `CanonicalSpec`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

from vertex_api.catalog.output_directories import get_model_directory_or_none
from vertex_api.job_kinds import TRAINING_PIPELINE, Kind
from vertex_api.training_pipelines.backing_job import (
    convert_backing_job_path_to_pipeline_path,
    get_backing_job_kind,
)
from vertex_api.validation import pipeline_validation
from vertex_api.validation.job_validation import (
    ValuePredicate,
    canonicalize_job_and_find_problems,
    never_unresolved,
)
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape_validation import (
    FieldProblem,
    canonicalize_and_find_shape_problems,
    get_value_at_path_or_none,
)

_NAME = "displayName"


@dataclass(frozen=True)
class CanonicalSpec:
    """A valid job or training pipeline: camelCase names, enum names, whole numbers as int, unset fields absent.

    `fields` are those of the API's message. Texts in them may hold references that are filled in later. The spec of a
    job that is adopted may lack a `displayName`.
    """

    kind: Kind
    fields: Mapping[str, Any]

    @cached_property
    def backing_spec_or_self(self) -> "CanonicalSpec":
        """The job that trains: the one that a pipeline runs, or this job itself."""
        if self.kind != TRAINING_PIPELINE:
            return self
        named = {_NAME: "", **self.fields}
        return CanonicalSpec(get_backing_job_kind(named), pipeline_validation.convert_pipeline_to_backing_job(named))

    @property
    def study_spec(self) -> Mapping[str, Any] | None:
        """The StudySpec of a tuning job or a pipeline that runs one, else None."""
        return self.backing_spec_or_self.fields.get("studySpec")

    @property
    def job_spec_path(self) -> KeyPath:
        """Where the CustomJobSpec stands in `fields`."""
        return self.convert_backing_job_path_to_own_path((self._own_or_backing_job_kind.spec_field,))

    @property
    def job_spec(self) -> Mapping[str, Any]:
        """The CustomJobSpec: of a tuning job that of each trial."""
        return cast(Mapping[str, Any], get_value_at_path_or_none(self.fields, self.job_spec_path))

    @property
    def model_dir(self) -> str | None:
        """The folder of the model, which is known before the job runs; None for trials, whose best one has it."""
        return None if self.study_spec else get_model_directory_or_none(self.job_spec)

    def convert_backing_job_path_to_own_path(self, path: KeyPath) -> KeyPath:
        """Return where a field of `backing_spec_or_self` stands in `fields`."""
        if self.kind != TRAINING_PIPELINE:
            return path
        return convert_backing_job_path_to_pipeline_path(self._own_or_backing_job_kind, path)

    def copy_with_all_fields_replaced(self, fields: Mapping[str, Any]) -> "CanonicalSpec":
        """Return the spec with other fields, which must be canonical."""
        return CanonicalSpec(self.kind, fields)

    @property
    def _own_or_backing_job_kind(self) -> Kind:
        return get_backing_job_kind(self.fields) if self.kind == TRAINING_PIPELINE else self.kind


def canonicalize_spec_and_find_problems(
    kind: Kind,
    body: Any,
    *,
    is_name_required: bool = True,
    is_unresolved_value: ValuePredicate = never_unresolved,
) -> tuple[CanonicalSpec | None, list[FieldProblem]]:
    """Return the canonical form of a job or pipeline, None if it has problems, and every problem that it has.

    `is_name_required` is false for a job that is adopted: it has a `displayName` already. Rules do not apply to texts
    that have unresolved references.
    """
    is_unnamed = not is_name_required and isinstance(body, Mapping) and not body.keys() & {_NAME, "display_name"}
    named = {**body, _NAME: kind.type} if is_unnamed else body
    for_pipeline = pipeline_validation.canonicalize_pipeline_with_defaults_and_find_problems
    validate = for_pipeline if kind == TRAINING_PIPELINE else partial(canonicalize_job_and_find_problems, kind)
    fields, problems = validate(named, is_unresolved_value=is_unresolved_value)
    if problems:
        return None, problems
    return CanonicalSpec(kind, {key: fields[key] for key in fields if not (is_unnamed and key == _NAME)}), []


def canonicalize_stored_spec(kind: Kind, job: Mapping[str, Any]) -> CanonicalSpec:
    """Return the canonical form of a valid job as the service or Pulumi's state holds it, without applying rules.

    Fields that only the service sets are left out. Pulumi's engine turns whole numbers into floats.
    """
    named = {_NAME: kind.type, **job}
    if kind == TRAINING_PIPELINE:
        fields = pipeline_validation.canonicalize_pipeline_and_drop_unknown_fields(named)
    else:
        fields, _ = canonicalize_and_find_shape_problems(kind.typed_dict, named, output_only="drop")
    return CanonicalSpec(kind, {key: fields[key] for key in fields if key != _NAME or _NAME in job})
