"""Who uploads packages and submits jobs through the real engine, by each form of credentials, and that none stays.

A stand-in for Google's APIs reads whose token each call has; an emulator behind it runs the jobs.
"""

import secrets
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from vertex_training.review.document import PreviewDocument
from vertex_training.review.markdown import render_markdown
from vertex_training.review.review import build_review

from tests.engine.cloud import CloudProject, create_cloud_project
from tests.engine.test_canary import Processes
from tests.standins.google_apis import JOBS, GoogleApisStandIn, google_apis
from tests.vertex_emulator.running import IMAGE, RunningEmulator, until

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")
STORAGE = "storage.googleapis.com"
LOUD = ("--debug", "--logtostderr", "-v=9")
"""All that the engine can say of what it does. At this level it writes secrets of the config that any provider gets."""
OWN = secrets.token_hex(4)
"""Tests of another checkout show canaries of their own in their commands."""
TOKEN, OTHER_TOKEN = f"ya29.canary-of-the-environment-{OWN}", f"ya29.canary-of-the-config-{OWN}"
SUBJECT = f"canary-of-the-identity-provider-{OWN}"
KEY, TARGET = "key@acme-dev.iam.gserviceaccount.com", "target@acme-dev.iam.gserviceaccount.com"
GO = "/gcs/tests/go"
"""A file that a job waits for."""
Form = tuple[dict[str, str], dict[str, str], str]
"""Variables, secrets of the stack's config, and the caller that Google sees."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("credentials")


@pytest.fixture(scope="module")
def apis(folder: Path, vertex: RunningEmulator) -> Iterator[GoogleApisStandIn]:
    with google_apis(folder) as made:
        made.vertex = vertex.url
        yield made


@pytest.fixture(scope="module")
def cloud(folder: Path, vertex: RunningEmulator, apis: GoogleApisStandIn) -> CloudProject:
    """A stack with a package and a job that runs it, submitted to Google's own address."""
    project = CloudProject(folder, vertex)
    project.declarations["images"] = {"trainer": {"uri": IMAGE}}
    project.declarations["packages"] = {"script": {"script": "trainer/train.py"}}
    project.container["command"], project.container["args"] = ["true"], ["${packages.script}"]
    project.declare()
    del project.environment["CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM"]
    project.environment |= apis.variables
    return project


FORMS: dict[str, Callable[[GoogleApisStandIn], Form]] = {
    "token": lambda apis: ({"GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN}, {}, TOKEN),
    "key": lambda apis: ({"GOOGLE_CREDENTIALS": apis.write_key(KEY).read_text()}, {}, f"token-of-{KEY}"),
    "account": lambda apis: (
        {"GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN, "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": TARGET},
        {},
        f"{TOKEN}-as-{TARGET}",
    ),
    "federation": lambda apis: (
        {"GOOGLE_APPLICATION_CREDENTIALS": str(apis.write_federation(SUBJECT, TARGET))},
        {},
        f"token-of-{SUBJECT}-as-{TARGET}",
    ),
    "config's token": lambda apis: (
        {"GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN},
        {"gcp:accessToken": OTHER_TOKEN},
        OTHER_TOKEN,
    ),
    "config's key": lambda apis: ({}, {"gcp:credentials": apis.write_key(KEY).read_text()}, f"token-of-{KEY}"),
}
"""Those of the config last: at its loudest, the engine writes what a provider had before, too."""


@pytest.fixture(scope="module")
def encrypted(cloud: CloudProject, apis: GoogleApisStandIn) -> dict[str, Any]:
    """Return the secrets of all forms as a stack file has them."""
    secret = {key: value for form in FORMS.values() for key, value in form(apis)[1].items()}
    options = [option for key, value in secret.items() for option in ("--secret", f"{key}={value}")]
    cloud.pulumi("config", "set-all", *options, "--stack", "dev")
    config = yaml.safe_load((cloud.root / "stacks" / "Pulumi.dev.yaml").read_text())["config"]
    cloud.declare()
    return {key: config[key] for key in secret}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_calls_and_is_seen_nowhere(
    cloud: CloudProject,
    apis: GoogleApisStandIn,
    encrypted: dict[str, Any],
    folder: Path,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variables, config, caller = FORMS[form](apis)
    for name, value in variables.items():
        monkeypatch.setitem(cloud.environment, name, value)
    for name in config:
        monkeypatch.setitem(cloud.stack, name, encrypted[name])
    cloud.declare()
    cloud.edit_code()
    apis.callers.clear()
    plan, preview = folder / "plan.json", folder / "preview.json"
    options = LOUD[:1] if config else LOUD
    preview.write_text(
        cloud.pulumi("preview", "--json", "--show-sames", "--debug", "--save-plan", str(plan), "--stack", "dev")
    )
    assert apis.callers == {}, "a preview calls nothing"
    with Processes() as processes:
        seen = [cloud.up("--diff", *options, "--plan", str(plan))]
    assert {host: {*apis.callers[host]} for host in (STORAGE, JOBS)} == {STORAGE: {caller}, JOBS: {caller}}
    document = PreviewDocument.parse(preview.read_text(), "preview")
    seen += [render_markdown(build_review(document)), plan.read_text(), preview.read_text(), *processes.commands]
    files = [*folder.glob("state/**/*"), *folder.glob("home/**/*"), *cloud.root.glob("stacks/*")]
    seen += [file.read_text(errors="replace") for file in files if file.is_file()]
    assert len(processes.commands) > 5 and any("trainer/train.py" in text for text in seen)
    assert [text[:2000] for text in seen for canary in canaries(apis) if canary in text] == []


def canaries(apis: GoogleApisStandIn) -> list[str]:
    """Return what nobody may read: tokens, and the middle of a key."""
    return [TOKEN, OTHER_TOKEN, SUBJECT, apis.private_key.splitlines()[10]]


def test_a_token_that_ends_in_a_wait_loses_nothing(
    cloud: CloudProject, vertex: RunningEmulator, apis: GoogleApisStandIn
) -> None:
    cloud.container["command"] = ["sh", "-c", f"until [ -e {GO} ]; do sleep 0.1; done"]
    cloud.declare()
    cloud.environment["GOOGLE_OAUTH_ACCESS_TOKEN"] = TOKEN
    with ThreadPoolExecutor(1) as thread:
        up = thread.submit(cloud.up, fails=True)
        (job,) = until(lambda: running(vertex), "a running job")
        apis.expired.add(TOKEN)
        output = up.result()
    assert TOKEN not in output
    (line,) = {each.partition("error: ")[2] for each in output.splitlines() if "GOOGLE_OAUTH_ACCESS_TOKEN" in each}
    assert "they go on, and the next `pulumi up` waits for them: no valid Google credentials: " in line
    assert line.endswith("GOOGLE_OAUTH_ACCESS_TOKEN: the access token has expired or is not valid; set a new one")
    assert cloud.resources()["train"]["id"] == job["name"]

    (vertex.data / "gcs" / "tests").mkdir(parents=True, exist_ok=True)
    (vertex.data / "gcs" / "tests" / "go").touch()
    cloud.environment["GOOGLE_OAUTH_ACCESS_TOKEN"] = OTHER_TOKEN
    cloud.up()
    assert cloud.outputs()["jobs"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
    assert [each["name"] for each in jobs(vertex)] == [job["name"]]


def jobs(vertex: RunningEmulator) -> list[dict[str, Any]]:
    """Return the jobs of the stack."""
    path = "v1/projects/acme-dev/locations/europe-west4/customJobs"
    return list(vertex.call("GET", path).get("customJobs", []))


def running(vertex: RunningEmulator) -> list[dict[str, Any]]:
    """Return the jobs that run."""
    return [job for job in jobs(vertex) if job["state"] == "JOB_STATE_RUNNING"]


PROGRAM = """
import pulumi, pulumi_gcp, vertex_training

own = pulumi_gcp.Provider("%s", project="acme-dev", access_token="%s")
vertex_training.TrainingStack("training", opts=pulumi.ResourceOptions(providers=[own]))
"""


def test_a_program_s_other_identity_submits_nothing(tmp_path: Path, vertex: RunningEmulator) -> None:
    project = create_cloud_project(tmp_path, vertex)
    (project.root / "__main__.py").write_text(PROGRAM % ("own", OTHER_TOKEN))
    project.environment["GOOGLE_OAUTH_ACCESS_TOKEN"] = TOKEN
    before = jobs(vertex)
    output = project.up(fails=True)
    assert 'provider "own": gcp:accessToken: differs from what jobs, images and packages are submitted with' in output
    assert TOKEN not in output and OTHER_TOKEN not in output
    assert "train" not in project.resources() and jobs(vertex) == before
    (project.root / "__main__.py").write_text(PROGRAM % ("same", TOKEN))
    project.up()
    assert "train" in project.resources() and TOKEN not in project.read_state()
    project.assert_no_changes()
