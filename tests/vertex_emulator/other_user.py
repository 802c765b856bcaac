"""Another user of this machine, as whom only root can run code: such code, in a child process, and their folder."""

import json
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a process as another user")


@contextmanager
def reachable_folder(mode: int) -> Iterator[Path]:
    """A new folder of this mode that other users can reach, as pytest's own are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(mode)
        yield Path(folder)


def as_user(user_id: int, work: Callable[[], Any]) -> Any:
    """What `work` gives, as JSON, in a process of that user."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user_id)
            os.setuid(user_id)
            os.write(writer, json.dumps(work()).encode())
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text)
