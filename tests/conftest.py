"""How `make test` runs the tests side by side."""

import fcntl
import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import once

if TYPE_CHECKING:
    from tests.standins.google_apis import GoogleApisStandIn

MOST = 8
"""Docker has addresses for some thirty networks."""
INDEPENDENT = ("tests/engine/", "tests/faults/")
"""The tests here have a project or an emulator of their own each, and take longest."""
FIRST = (*INDEPENDENT, "tests/clients/", "tests/vertex_emulator/", "tests/examples/")
"""The tests here wait for containers and processes. The others compute, in short files: all processes end together."""
SHARED = (
    *(
        f"tests/engine/test_{name}.py"
        for name in ("adopting", "ci", "cloud", "corpus", "new", "promotion", "renaming", "waiting")
    ),
    "tests/clients/test_gcloud",
    "tests/clients/",
    "tests/components/targets/",
    "tests/examples/test_jax",
    "tests/vertex_emulator/page/",
)
"""The tests of each run in one process: they share an emulator, a registry that got a base image, a browser, layers of
an image, a project that goes from step to step, the wheel, or a package whose import takes a second or more: Google's
SDK, or Pulumi's of Google Cloud. The first that fits counts."""


TEMPORARY = "vertex tests"
"""Where the folders of tests are: users have spaces in the paths of their projects, too."""


def pytest_configure() -> None:
    """A run in the background ignores Ctrl-C, and the programs that it starts would, too."""
    folder = Path(tempfile.gettempdir(), f"{TEMPORARY} {os.getuid()}")
    folder.mkdir(exist_ok=True)
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """More than there are processors: tests of containers and of `pulumi` wait for a third of their time."""
    return min(MOST, 3 * (os.cpu_count() or 1) + 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one process, as they share an emulator; in INDEPENDENT, those of a class."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, *classes, _ = nodeid.partition("[")[0].split("::")
            for shared in SHARED:
                if file.startswith(shared):
                    return shared
            is_independent = file.startswith(INDEPENDENT) and not classes
            return nodeid if is_independent else "::".join([file, *classes])

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """The first process compiles the tests, and the others read what it wrote. What is collected stays to the end."""
    gc.disable()
    folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    if hasattr(session.config, "workerinput"):
        folder = folder.parent
    os.environ[once.VARIABLE] = str(folder)
    with (folder / "collecting.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest begin, so that what is left at the end is short."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: [not item.nodeid.startswith(folder) for folder in FIRST])


@pytest.fixture(scope="module")
def apis(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[GoogleApisStandIn]":
    """Google's services for tokens and what they are for, on a port of this machine."""
    from tests.standins.google_apis import google_apis

    with google_apis(tmp_path_factory.mktemp("google")) as made:
        yield made
