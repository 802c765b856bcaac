"""The plugin of pytest: an emulator for each session, and a project of its own for each test.

pytest imports this module in every project whose environment has the package, so it imports the emulator only when a
test asks for it.
"""

import itertools
import os
import re
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from vertex_emulator.testing.project import EmulatorProject

_NUMBERS = itertools.count(1)
_MAX_PROJECT_LENGTH = 30  # of Google Cloud's project ids
_SHOWN_LINES = 40
"""Of the log of each job that has failed, the last ones, where a test fails."""


@pytest.fixture(scope="session")
def _session_emulator(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[EmulatorProject]":
    from vertex_emulator.data_folder import require_endpoint
    from vertex_emulator.errors import EmulatorError, EmulatorNotRunning
    from vertex_emulator.testing.project import EmulatorProject, run_emulator

    # Below `vertex-emulator exec`, whose emulator programs use that a test starts.
    folder = Path(os.environ.get("VERTEX_EMULATOR_DATA", ""))
    with suppress(EmulatorNotRunning):
        if require_endpoint(folder).url == os.environ.get("STORAGE_EMULATOR_HOST"):
            yield EmulatorProject(folder)
            return
    with ExitStack() as stack:
        try:
            emulator = stack.enter_context(run_emulator(tmp_path_factory.mktemp("vertex-emulator")))
        except EmulatorError as error:
            pytest.fail(f"vertex_emulator: {error}", pytrace=False)
        yield emulator


@pytest.fixture
def vertex_emulator(
    _session_emulator: "EmulatorProject", request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> "Iterator[EmulatorProject]":
    """A project of this test's own in an emulator that all tests of the session share.

    The environment has what `vertex-emulator env` prints, and Google's SDK gets the emulator and this project as its
    defaults, which what a program passes to `aiplatform.init` leaves. Injected faults end with the test, with a warning
    of each that has hit nothing.
    """
    from dataclasses import replace

    from vertex_emulator.gcs.files import BucketTree

    emulator = replace(_session_emulator, project=_project_id(request.node.name))
    BucketTree(emulator.data_path / "gcs").mkdir(
        f"gs://{emulator.bucket_name}"
    )  # a job may be the first to write to it
    for name, value in emulator.environment_variables.items():
        monkeypatch.setenv(name, value)
    with _sdk_defaults(emulator):
        yield emulator
    for missed in emulator.clear_faults():
        warnings.warn(f"an injected fault has hit nothing: {missed}", stacklevel=1)


@contextmanager
def _sdk_defaults(emulator: "EmulatorProject") -> Iterator[None]:
    """Lead Google's SDK to the emulator. Left to itself, code that a test calls would submit its jobs to the cloud."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its own imports
        from google.cloud.aiplatform import initializer

    config = vars(initializer.global_config)
    before = dict(config)
    arguments = emulator.aiplatform_init_arguments
    del arguments["staging_bucket"]  # the SDK asks for one, as on Vertex AI
    initializer.global_config.init(**arguments)
    try:
        yield
    finally:
        config.clear()
        config.update(before)


@pytest.fixture
def vertex_job_log(vertex_emulator: "EmulatorProject") -> Callable[..., str]:
    """What reads the log of a job, as `EmulatorProject.read_job_log` does: `vertex_job_log(job, task=None)`."""
    return vertex_emulator.read_job_log


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of a failed test's failed jobs: the link in the error of a job leads to Google Cloud."""
    report = yield
    emulator = getattr(item, "funcargs", {}).get("vertex_emulator")
    if report.when == "call" and report.failed and emulator is not None:
        from vertex_emulator.errors import EmulatorError

        with suppress(EmulatorError):
            for job, log in emulator.failed_job_logs(call.start).items():
                report.sections.append((f"Log of job {job}", "\n".join(log.splitlines()[-_SHOWN_LINES:])))
    return report


def _project_id(test_name: str) -> str:
    """Return an id that tells the test, as Google Cloud allows it: `test-training-2`."""
    slug = re.sub(r"[^a-z0-9]+", "-", test_name.lower()).strip("-")
    number = f"-{next(_NUMBERS)}"
    return slug[: _MAX_PROJECT_LENGTH - len(number)].rstrip("-") + number
