"""What of Google's client is imported, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from vertex_api.deferred_packages import register_deferred_package

ROOT = Path(__file__).parents[2]
SUBMIT = """
import sys
from vertex_api.client import Endpoint, RestClient
from vertex_api.job_kinds import KINDS
client = RestClient(Endpoint.for_server("http://127.0.0.1:1"))
for kind in KINDS.values():
    client._get_client_method("create", kind)
    client._build_proto_message(kind, {"displayName": "a"})
"""


def run_program(program: str) -> str:
    """Run a program in a process of its own and return what it prints."""
    command = [sys.executable, "-c", SUBMIT + program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_clients_of_jobs_are_imported() -> None:
    services = "google.cloud.aiplatform_v1.services."
    imported = run_program(f"print(*{{name.split('.')[4] for name in sys.modules if name.startswith({services!r})}})")
    assert set(imported.split()) == {"job_service", "pipeline_service"}


@pytest.mark.parametrize(
    "program",
    [
        "from google.cloud.aiplatform_v1 import CustomJob, EndpointServiceClient",
        "import google.cloud.aiplatform_v1.types; google.cloud.aiplatform_v1.types.endpoint.Endpoint",
        "from google.cloud import aiplatform; aiplatform.CustomJob; aiplatform.Endpoint",
    ],
)
def test_the_rest_can_be_imported_afterwards(program: str) -> None:
    run_program(program)


def test_messages_are_the_same_afterwards() -> None:
    check = """
message = type(client._build_proto_message(KINDS["customJobs"], {"displayName": "a"}))
from google.cloud import aiplatform_v1
print(message is aiplatform_v1.CustomJob)
"""
    assert run_program(check) == "True\n"


def test_a_missing_package_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"'google[.]cloud[.]nothing'"):
        register_deferred_package("google.cloud.nothing")
