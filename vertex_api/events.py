"""TensorBoard's event files: their records, and the scalars in these.

An event file is a TFRecord file: records of a length, its checksum, the data, and the data's checksum. TensorBoard's
own reader takes a path, which would follow links that containers make, has no start offset, and computes checksums in
Python, which takes 11 s for a million records. So records are read here, from bytes.
"""

import math
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import google_crc32c
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

MAX_TAG_BYTES = 250
MAX_RECORD_BYTES = 1 << 20
"""Of a record that is read: images, graphs and audio are longer; scalars are not."""
_MAX_WALL_TIME = 1e12  # seconds; a later one is none
_NEVER = 1 << 64  # no file has this size
_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
OVERHEAD_BYTES = _HEADER.size + _CHECKSUM.size
# The fields and the packed forms of tensors with one number, by the numbers of tensorflow.DataType.
_TENSOR_FORMS = {1: ("float_val", "<f"), 2: ("double_val", "<d"), 3: ("int_val", "<i"), 9: ("int64_val", "<q")}
# Of TensorFlow's messages (event.proto, summary.proto, tensor.proto), the fields that scalars have: all others are
# skipped. A message that is in another's name is a field's type; `*` is a list, and `|` one of an alternative.
_MESSAGES = {
    "Event": "1 double wall_time, 2 int64 step, 5 Summary summary",
    "Summary": "1 *Value value",
    "Value": "1 string tag, 2 |float simple_value, 8 |Tensor tensor, 9 Metadata metadata",
    "Metadata": "1 Plugin plugin_data",
    "Plugin": "1 string plugin_name",
    "Tensor": "1 int32 dtype, 2 Shape tensor_shape, 4 bytes tensor_content, 5 *float float_val, 6 *double double_val, "
    "7 *int32 int_val, 10 *int64 int64_val",
    "Shape": "2 *Dimension dim",
    "Dimension": "1 int64 size",
}


def _event_class() -> Any:
    file = FileDescriptorProto(name="events.proto", package="events", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            number, form, field_name = field.split()
            kind = form.lstrip("*|")
            made = message.field.add(name=field_name, number=int(number))
            made.label = FieldDescriptorProto.LABEL_REPEATED if "*" in form else FieldDescriptorProto.LABEL_OPTIONAL
            if kind in _MESSAGES:
                made.type, made.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".events.{kind}"
            else:
                made.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
            if "|" in form:
                made.oneof_index = 0
                if not message.oneof_decl:
                    message.oneof_decl.add(name="value")
    pool = DescriptorPool()  # of its own: a program may have TensorFlow's
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("events.Event"))


_EVENT = _event_class()


class Scalar(NamedTuple):
    """A value of a tag: at a training step, and at a wall time in seconds since 1970."""

    tag: str
    step: int
    wall_time: float
    value: float


def scalars(serialized_event: bytes) -> Iterator[Scalar]:
    """Yield the scalars of an event. Raises ValueError for bytes that are no event."""
    try:
        event = _EVENT.FromString(serialized_event)
    except DecodeError as error:
        raise ValueError("the record is no event") from error
    wall_time = event.wall_time if 0 <= event.wall_time < _MAX_WALL_TIME else 0.0
    for summary in event.summary.value:
        value = _value(summary)
        if value is not None and len(summary.tag.encode()) <= MAX_TAG_BYTES:
            yield Scalar(summary.tag, event.step, wall_time, value)


def _value(summary: Any) -> float | None:
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


class Records(NamedTuple):
    """Records, the offset after them, and what is wrong with the file there, empty if nothing is.

    There is more to read once the file has `next_size`: a file that lies about its lengths is not read again and again.
    `read_bytes` is how much was read to find the records.
    """

    records: list[bytes]
    end_offset: int
    next_size: int
    read_bytes: int
    problem: str = ""


def parse(data: bytes, offset: int, size: int) -> Records:
    """Return the complete records in what was read from an offset of a file of this size.

    A record that is still being written is left for the next time. Records of more than `MAX_RECORD_BYTES` are skipped.
    Nothing is read after a damaged one.
    """
    found: list[bytes] = []
    at = 0
    while at + _HEADER.size <= len(data):
        length, checksum = _HEADER.unpack_from(data, at)
        if _masked_checksum(data[at : at + 8]) != checksum:
            return Records(found, offset + at, _NEVER, len(data), f"is damaged at byte {offset + at}")
        start, end = at + _HEADER.size, at + length + OVERHEAD_BYTES
        if offset + end > size or (length <= MAX_RECORD_BYTES and end > len(data)):
            return Records(found, offset + at, offset + end, len(data))
        if length <= MAX_RECORD_BYTES:
            record = data[start : start + length]
            if _masked_checksum(record) != _CHECKSUM.unpack_from(data, start + length)[0]:
                return Records(found, offset + at, _NEVER, len(data), f"is damaged at byte {offset + at}")
            found.append(record)
        at = end
    return Records(found, offset + at, offset + at + _HEADER.size, len(data))


def _masked_checksum(data: bytes) -> int:
    checksum: int = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def last(end: bytes, *, is_whole: bool) -> dict[str, float]:
    """Return the last value of each tag in the end of an event file, of those tags whose last value is finite.

    Unless the end `is_whole`, it may begin amid a record: what stands before the first whole one is skipped.
    """
    start = 0 if is_whole else _first_header(end)
    found: dict[str, float] = {}
    for record in parse(end[start:], 0, len(end) - start).records:
        try:
            found |= {scalar.tag: scalar.value for scalar in scalars(record)}
        except ValueError:
            continue
    return {tag: value for tag, value in found.items() if math.isfinite(value)}


def _first_header(data: bytes) -> int:
    """Return where the first record begins, which a length and its checksum show; the end if there is none."""
    for at in range(len(data) - OVERHEAD_BYTES + 1):
        length, checksum = _HEADER.unpack_from(data, at)
        if length <= MAX_RECORD_BYTES and _masked_checksum(data[at : at + 8]) == checksum:
            return at
    return len(data)
