"""Event files as training code writes them: by tensorboardX, which PyTorch's users have."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import RecordWriter

LOG = "gs://logs/run"


def plain(tag: str, step: int, value: float, wall_time: float = 1000.0) -> Any:
    """An event as TensorFlow 1, PyTorch and tensorboardX write it."""
    event = Event(step=step, wall_time=wall_time)
    event.summary.value.add(tag=tag, simple_value=value)
    return event


def tensor(tag: str, step: int, plugin: str = "scalars", **fields: Any) -> Any:
    """An event as TensorFlow 2 writes it; `fields` are those of the tensor."""
    event = Event(step=step, wall_time=1000.0)
    value = event.summary.value.add(tag=tag)
    value.metadata.plugin_data.plugin_name = plugin
    for name, given in fields.items():
        if isinstance(given, list):
            getattr(value.tensor, name).extend(given)
        else:
            setattr(value.tensor, name, given)
    return event


def records(events: Iterable[Any]) -> bytes:
    """The content of an event file."""
    return raw_records(event.SerializeToString() for event in events)


def raw_records(contents: Iterable[bytes]) -> bytes:
    """The content of a file of records."""
    writer = RecordWriter.__new__(RecordWriter)
    writer._writer = BytesIO()
    for content in contents:
        writer.write(content)
    return bytes(writer._writer.getvalue())


def add_to_file(buckets: Path, name: str, content: bytes, run: str = "") -> Path:
    """Append to a file of the log folder; its path."""
    folder = buckets / "logs" / "run" / run
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("ab") as file:
        file.write(content)
    return folder / name
