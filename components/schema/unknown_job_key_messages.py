"""The message for an unknown key of a declared job, which says where the key belongs."""

from pydantic.alias_generators import to_camel

from vertex_api import types
from vertex_api.messages import KeyPath, message_fields
from vertex_api.names import TRAINING_PIPELINE, Kind
from vertex_api.validation.shape import unknown_field

from . import shapes
from .declared_job import LIFECYCLE_KEY, SPEC_KEY

# In the API, the inputs of a pipeline's task are free JSON.
_INPUTS = (types.CustomJobSpec, types.HyperparameterTuningJob)


def find_unknown_top_key_message_or_none(kind: Kind, path: KeyPath) -> str | None:
    """Return the message for an unknown key at the top of a declared job. Returns None for all other paths."""
    name = to_camel(str(path[0])) if len(path) == 1 else ""
    if not name or name in message_fields(kind.typed_dict):
        return None
    if name in message_fields(shapes.Lifecycle):
        return f"unknown field; it belongs under {LIFECYCLE_KEY}"
    if kind == TRAINING_PIPELINE and any(name in message_fields(inputs) for inputs in _INPUTS):
        return f"unknown field; it belongs under {kind.spec_field}"
    return unknown_field(kind.typed_dict, path, (LIFECYCLE_KEY, SPEC_KEY))
