"""The message for an unknown key of a declared job, which says where the key belongs."""

from pydantic.alias_generators import to_camel

from vertex_api import types
from vertex_api.job_kinds import TRAINING_PIPELINE, Kind
from vertex_api.typed_dict_fields import get_fields_by_name
from vertex_api.validation.rules import KeyPath
from vertex_api.validation.shape_validation import unknown_field_text

from . import shapes
from .declared_job import LIFECYCLE_KEY, SPEC_KEY

# In the API, the inputs of a pipeline's task are free JSON.
_INPUTS = (types.CustomJobSpec, types.HyperparameterTuningJob)


def find_unknown_top_key_message_or_none(kind: Kind, path: KeyPath) -> str | None:
    """Return the message for an unknown key at the top of a declared job. Returns None for all other paths."""
    name = to_camel(str(path[0])) if len(path) == 1 else ""
    if not name or name in get_fields_by_name(kind.typed_dict):
        return None
    if name in get_fields_by_name(shapes.Lifecycle):
        return f"unknown field; it belongs under {LIFECYCLE_KEY}"
    if kind == TRAINING_PIPELINE and any(name in get_fields_by_name(inputs) for inputs in _INPUTS):
        return f"unknown field; it belongs under {kind.spec_field}"
    return unknown_field_text(kind.typed_dict, path, (LIFECYCLE_KEY, SPEC_KEY))
