"""Doctor in healthy projects of real kinds, with credentials that Google's own services answer by their scopes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components.doctor.test_doctor import (
    ACCOUNT,
    AGENT,
    EXISTING,
    ROLES,
    SHARED,
    SUBNETWORK,
    changes,
    healthy,
    prepare,
    run,
)
from tests.standins.google_apis import EMAIL_SCOPE, GoogleApisStandIn, google_apis
from tests.standins.google_project import GoogleProject, google_project
from vertex_api import credentials

ANN, DEPLOYER = "ann@example.com", "deployer@acme-dev.iam.gserviceaccount.com"
NAMED = {"identity": {"submitters": [f"serviceAccount:{DEPLOYER}"]}}
QUOTA_PROJECT = {"gcp:userProjectOverride": True, "gcp:billingProject": "acme-dev"}
READING = {"resourcemanager.projects.get", "serviceusage.services.get", "serviceusage.quotas.get"}
READING |= {"orgpolicy.policy.get", "storage.buckets.get"}
"""Permissions in roles of the deployer that only look (IAM's page "IAM roles and permissions index"): in those of
Service Usage, and of Cloud Storage, whose administrators read the policies that limit buckets."""


@pytest.fixture(scope="module")
def apis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleApisStandIn]:
    with google_apis(tmp_path_factory.mktemp("apis")) as served:
        yield served


@pytest.fixture
def project(apis: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[GoogleProject]:
    """A healthy project, behind Google's own services for tokens."""
    pulumi = tmp_path / "programs" / "pulumi"
    pulumi.parent.mkdir()
    pulumi.touch(0o755)
    monkeypatch.setenv("PATH", str(pulumi.parent))
    monkeypatch.delenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", raising=False)
    for name in ("GOOGLE_CLOUD_QUOTA_PROJECT", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    with google_project(healthy()) as served:
        del served.variables["GOOGLE_OPENIDCONNECT_CUSTOM_ENDPOINT"]
        for name, text in {**served.variables, **apis.variables}.items():
            monkeypatch.setenv(name, text)
        monkeypatch.chdir(tmp_path)
        yield served
    credentials.use_config({})


def is_healthy(
    project: GoogleProject, who: str, folder: Path, capsys: pytest.CaptureFixture[str], **stack: Any
) -> None:
    config = {key: stack.pop(key) for key in list(stack) if ":" in key}
    prepare(folder, stack, **config)
    code, lines = run(capsys, "--stack", "dev")
    assert (code, len(lines)) == (0, 1), lines
    assert f"as {who}: nothing stands in the way of `pulumi up`" in lines[0]
    assert changes(project) == []


def test_an_owner_lacks_nothing(
    project: GoogleProject,
    apis: GoogleApisStandIn,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project.is_owner = True
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(apis.write_person(ANN, "acme-dev")))
    submitters = {"identity": {"submitters": [f"user:{ANN}"]}, "packages": {"code": {"script": "trainer/task.py"}}}
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "task.py").touch()
    is_healthy(project, f"user:{ANN}", tmp_path, capsys, **submitters, **QUOTA_PROJECT)
    assert any(each.endswith("testIamPermissions") for _, each in project.requests)


def test_the_documented_roles_are_enough(
    project: GoogleProject,
    apis: GoogleApisStandIn,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project.held = set[str]().union(*ROLES.values()) | READING
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(apis.write_key(DEPLOYER)))
    is_healthy(project, f"serviceAccount:{DEPLOYER}", tmp_path, capsys, **NAMED)


def test_roles_of_a_folder_count(
    project: GoogleProject, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.ancestors = ["folder/7", "organization/1"]
    project.grants = {"folders/7": [("roles/editor", AGENT), ("roles/editor", f"serviceAccount:{ACCOUNT}")]}
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", f"token-of-{ANN}{EMAIL_SCOPE}")
    identity = {**EXISTING["identity"], "agentRoles": False}
    is_healthy(project, f"user:{ANN}", tmp_path, capsys, **{**EXISTING, "identity": identity})
    project.resources["hierarchy/organizations/1:getIamPolicy"] = 403
    project.grants = {}
    code, lines = run(capsys, "--stack", "dev")
    unread = "those of organizations/1 may, which cannot be read"
    assert code == 2 and [unread in line for line in lines[1::3]] == [True, True]


def test_a_subnetwork_of_a_shared_network_is_used(
    project: GoogleProject,
    apis: GoogleApisStandIn,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = SUBNETWORK.replace("acme-dev", "host-project")
    project.grants[shared] = [("roles/compute.networkUser", AGENT)]
    project.lacking = set()
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(apis.write_key(DEPLOYER)))
    is_healthy(project, f"serviceAccount:{DEPLOYER}", tmp_path, capsys, **SHARED)
    assert ("POST", f"compute/{shared}/testIamPermissions") in project.requests
    project.lacking = {"compute.subnetworks.use"}
    _, lines = run(capsys, "--stack", "dev")
    assert lines[2] == (
        "  gcloud compute networks subnets add-iam-policy-binding jobs --region=europe-west4 --project=host-project "
        f"--member=serviceAccount:{DEPLOYER} --role=roles/compute.networkUser"
    )


def test_an_identity_pool_signs_in(
    project: GoogleProject,
    apis: GoogleApisStandIn,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project.lacking = {"iam.serviceAccounts.actAs"}
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(apis.write_federation("ci", DEPLOYER)))
    is_healthy(project, f"serviceAccount:{DEPLOYER}", tmp_path, capsys, **NAMED)
    pool = "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/*"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(apis.write_federation("ci")))
    is_healthy(
        project, "an account that its credentials do not name", tmp_path, capsys, identity={"submitters": [pool]}
    )


def test_nobody_is_told_to_write_a_member_that_is_not_known(
    project: GoogleProject,
    apis: GoogleApisStandIn,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project.lacking = {"iam.serviceAccounts.actAs", "iam.serviceAccounts.create"}
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(apis.write_federation("ci")))
    prepare(tmp_path, {"identity": {"submitters": ["user:bob@example.com"]}})
    code, lines = run(capsys, "--stack", "dev")
    assert code == 1 and not [line for line in lines if "MEMBER" in line]
    assert [line for line in lines if line.startswith("  ") and "account that is signed in" in line] == [
        "  # grant roles/iam.serviceAccountAdmin on project acme-dev to the account that is signed in"
    ]
    assert [line.partition(":")[0] for line in lines[1:] if not line.startswith(" ")] == ["problem", "cannot tell"]


def test_a_new_project_is_no_problem(
    project: GoogleProject,
    apis: GoogleApisStandIn,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project.disabled = {"cloudbilling"}
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(apis.write_key(DEPLOYER)))
    prepare(tmp_path, {})
    code, lines = run(capsys, "--stack", "dev")
    assert code == 0 and [line.partition(":")[0] for line in lines] == [
        "stack dev, project acme-dev, as serviceAccount",
        "note",
        "  gcloud services enable cloudbilling.googleapis.com --project=acme-dev",
    ]
