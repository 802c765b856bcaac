"""The scalars of an event: TensorFlow 1's, PyTorch's and tensorboardX's plain values, and TensorFlow 2's tensors."""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from tensorboardX.proto.event_pb2 import Event

MAX_TAG_BYTES = 250
_MAX_WALL_TIME = 1e12  # seconds; a later one is none
# The fields and the packed forms of tensors with one number, by the numbers of tensorflow.DataType.
_TENSOR_FORMS = {1: ("float_val", "<f"), 2: ("double_val", "<d"), 3: ("int_val", "<i"), 9: ("int64_val", "<q")}


class Scalar(NamedTuple):
    """A value of a tag: at a training step, and at a wall time in seconds since 1970."""

    tag: str
    step: int
    wall_time: float
    value: float


def iterate_scalars(serialized_event: bytes) -> Iterator[Scalar]:
    """Yield the scalars of an event. Raises ValueError for bytes that are no event."""
    try:
        event = Event.FromString(serialized_event)
    except DecodeError as error:
        raise ValueError("the record is no event") from error
    wall_time = event.wall_time if 0 <= event.wall_time < _MAX_WALL_TIME else 0.0
    for summary in event.summary.value:
        value = _get_scalar_or_none(summary)
        if value is not None and len(summary.tag.encode()) <= MAX_TAG_BYTES:
            yield Scalar(summary.tag, event.step, wall_time, value)


def _get_scalar_or_none(summary: Any) -> float | None:
    kind = summary.WhichOneof("value")
    if kind == "simple_value":
        return float(summary.simple_value)
    if kind != "tensor" or summary.metadata.plugin_data.plugin_name not in ("", "scalars"):
        return None
    tensor = summary.tensor
    field, form = _TENSOR_FORMS.get(tensor.dtype, ("", ""))
    if not field or any(dimension.size != 1 for dimension in tensor.tensor_shape.dim):
        return None
    if len(tensor.tensor_content) == struct.calcsize(form):
        return float(struct.unpack(form, tensor.tensor_content)[0])
    values = getattr(tensor, field)
    return float(values[0]) if len(values) == 1 else None
