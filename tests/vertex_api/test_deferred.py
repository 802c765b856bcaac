"""What of Google's client is imported, in processes of their own."""

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace

import pytest

from vertex_api.deferred import defer

ROOT = Path(__file__).parents[2]
SUBMIT = """
import sys
from vertex_api.client import Endpoint, Client
from vertex_api.names import KINDS
client = Client(Endpoint.for_server("http://127.0.0.1:1"))
for kind in KINDS.values():
    client._method("create", kind)
    client._message(kind, {"displayName": "a"})
"""


SERVICES = "google.cloud.aiplatform_v1.services."
PROGRAMS = {
    "services": f"""
        print(*{{name.split(".")[4] for name in sys.modules if name.startswith({SERVICES!r})}})
    """,
    "names": """
        message = type(client._message(KINDS["customJobs"], {"displayName": "a"}))
        from google.cloud.aiplatform_v1 import CustomJob, EndpointServiceClient
        print("the same messages" if message is CustomJob else "others")
    """,
    "types": """
        import google.cloud.aiplatform_v1.types
        google.cloud.aiplatform_v1.types.endpoint.Endpoint
        print("imported")
    """,
    "the SDK": """
        from google.cloud import aiplatform
        aiplatform.CustomJob
        aiplatform.Endpoint
        print("imported")
    """,
}
"""What programs do once jobs were submitted, each in a process that is forked from the one that submitted them."""
FORK = """
import os, sys
for text in sys.argv[1:]:
    sys.stdout.flush()
    if not (child := os.fork()):
        exec(text)
        sys.exit()
    if os.waitpid(child, 0)[1]:
        print("failed")
"""


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """What each of the programs prints."""
    command = [sys.executable, "-c", SUBMIT + FORK, *map(textwrap.dedent, PROGRAMS.values())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "failed" not in done.stdout, done.stdout + done.stderr
    return dict(zip(PROGRAMS, done.stdout.splitlines(), strict=True))


def test_only_clients_of_jobs_are_imported(printed: dict[str, str]) -> None:
    assert set(printed["services"].split()) == {"job_service", "pipeline_service"}


@pytest.mark.parametrize("program", ["types", "the SDK"])
def test_the_rest_can_be_imported_afterwards(printed: dict[str, str], program: str) -> None:
    assert printed[program] == "imported"


def test_messages_are_the_same_afterwards(printed: dict[str, str]) -> None:
    assert printed["names"] == "the same messages"


def test_a_missing_package_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"'google[.]cloud[.]nothing'"):
        defer("google.cloud.nothing")


def test_threads_wait_for_a_package_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go = (threading.Event() for _ in range(2))
    monkeypatch.setitem(sys.modules, "events", SimpleNamespace(began=began, go=go))
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "__init__.py").write_text("import events\nevents.began.set()\nevents.go.wait(60)\nValue = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    defer("slow")
    package = sys.modules.pop("slow")
    monkeypatch.setitem(sys.modules, "slow", package)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(getattr, package, "Value")
        assert began.wait(60)
        second = threads.submit(getattr, package, "Value")
        wait([second], timeout=0.1)
        go.set()
        assert [first.result(60), second.result(60)] == [1, 1]
    with pytest.raises(AttributeError, match="has no attribute 'value'"):
        package.value  # noqa: B018
