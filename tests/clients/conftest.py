"""An emulator, and clients that know of it only what `vertex-emulator env` says."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from tests.clients.environment import snippet, variables
from tests.clients.preloaded_gcloud import PreloadedGcloud
from tests.vertex_emulator.running import RunningEmulator
from vertex_emulator.testing.project import trusting

# The first process of a container ignores SIGTERM unless it handles it.
IDLE = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)); signal.pause()"
Gcloud = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    """One emulator for all clients."""
    emulator = RunningEmulator(tmp_path_factory.mktemp("clients") / "it's data")
    with trusting(emulator.data):
        yield emulator
    emulator.close()


@pytest.fixture(scope="session")
def environment(emulator: RunningEmulator) -> Mapping[str, str]:
    """What a shell's environment is after `eval "$(vertex-emulator env)"`, behind a dead proxy."""
    return variables(emulator.data, {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"})


@pytest.fixture(scope="session")
def gcloud(environment: Mapping[str, str]) -> Iterator[Gcloud]:
    """Runs gcloud; fails when it does, unless told which exit code to expect."""
    program = shutil.which("gcloud")
    if program is None:
        pytest.skip("gcloud is not installed")

    preloaded = PreloadedGcloud(program, environment)

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = preloaded.run(*arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    yield run
    preloaded.close()


@pytest.fixture
def in_environment(environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the shell in this process."""
    for name in os.environ.keys() - environment.keys():
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def client(in_environment: None) -> storage.Client:
    """A client of Cloud Storage that finds the emulator through STORAGE_EMULATOR_HOST."""
    return storage.Client(credentials=AnonymousCredentials(), project="my-project")


@pytest.fixture(params=["v1", "v1beta1"])
def api(request: pytest.FixtureRequest) -> Any:
    """Google's package, imported here because that takes a second, in each process that collects tests."""
    return import_module(f"google.cloud.aiplatform_{request.param}")


@pytest.fixture
def aiplatform(emulator: RunningEmulator, in_environment: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Google's SDK, set up by the lines that `env` prints for it; it looks ten times a second instead of every 5 s."""
    names: dict[str, Any] = {}
    exec(snippet(emulator.data), names)
    for module in ("jobs", "training_jobs"):
        monkeypatch.setattr(f"google.cloud.aiplatform.{module}._JOB_WAIT_TIME", 0.1)
    return names["aiplatform"]
