"""Doctor in healthy projects of real kinds, with credentials that Google's own services answer by their scopes."""

from collections.abc import Iterator
from dataclasses import dataclass
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
from tests.standins.google_apis import EMAIL_SCOPE, GoogleApisStandIn
from tests.standins.google_project import GoogleProject, google_project
from vertex_api import credentials

ANN, DEPLOYER = "ann@example.com", "deployer@acme-dev.iam.gserviceaccount.com"
NAMED = {"identity": {"submitters": [f"serviceAccount:{DEPLOYER}"]}}
QUOTA_PROJECT = {"gcp:userProjectOverride": True, "gcp:billingProject": "acme-dev"}
READING = {"resourcemanager.projects.get", "serviceusage.services.get", "serviceusage.quotas.get"}
READING |= {"orgpolicy.policy.get", "storage.buckets.get"}
"""Permissions in roles of the deployer that only look (IAM's page "IAM roles and permissions index"): in those of
Service Usage, and of Cloud Storage, whose administrators read the policies that limit buckets."""


@dataclass
class Doctor:
    """The command in a folder of its own, for a healthy project behind Google's own services for tokens."""

    project: GoogleProject
    apis: GoogleApisStandIn
    folder: Path
    _monkeypatch: pytest.MonkeyPatch
    _capsys: pytest.CaptureFixture[str]

    def sign_in(self, file: Path) -> None:
        """Take the credentials of a file."""
        self._monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    def take(self, token: str) -> None:
        """Take an access token."""
        self._monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", token)

    def prepare(self, **stack: Any) -> None:
        """Write a stack with these keys; those of other namespaces are its config."""
        config = {key: stack.pop(key) for key in list(stack) if ":" in key}
        prepare(self.folder, stack, **config)

    def run(self) -> tuple[int, list[str]]:
        """Return the exit code and the lines."""
        return run(self._capsys, "--stack", "dev")

    def finds_nothing(self, who: str, **stack: Any) -> None:
        """Check that a run says in one line that all is well, and has changed nothing."""
        self.prepare(**stack)
        code, lines = self.run()
        assert (code, len(lines)) == (0, 1), lines
        assert f"as {who}: nothing stands in the way of `pulumi up`" in lines[0]
        assert changes(self.project) == []


@pytest.fixture
def doctor(
    apis: GoogleApisStandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Doctor]:
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
        yield Doctor(served, apis, tmp_path, monkeypatch, capsys)
    credentials.use_config({})


def test_an_owner_lacks_nothing(doctor: Doctor) -> None:
    doctor.project.is_owner = True
    doctor.sign_in(doctor.apis.write_person(ANN, "acme-dev"))
    submitters = {"identity": {"submitters": [f"user:{ANN}"]}, "packages": {"code": {"script": "trainer/task.py"}}}
    (doctor.folder / "trainer").mkdir()
    (doctor.folder / "trainer" / "task.py").touch()
    doctor.finds_nothing(f"user:{ANN}", **submitters, **QUOTA_PROJECT)
    assert any(each.endswith("testIamPermissions") for _, each in doctor.project.requests)


def test_the_documented_roles_are_enough(doctor: Doctor) -> None:
    doctor.project.held = set[str]().union(*ROLES.values()) | READING
    doctor.sign_in(doctor.apis.write_key(DEPLOYER))
    doctor.finds_nothing(f"serviceAccount:{DEPLOYER}", **NAMED)


def test_roles_of_a_folder_count(doctor: Doctor) -> None:
    doctor.project.ancestors = ["folder/7", "organization/1"]
    doctor.project.grants = {"folders/7": [("roles/editor", AGENT), ("roles/editor", f"serviceAccount:{ACCOUNT}")]}
    doctor.take(f"token-of-{ANN}{EMAIL_SCOPE}")
    identity = {**EXISTING["identity"], "agentRoles": False}
    doctor.finds_nothing(f"user:{ANN}", **{**EXISTING, "identity": identity})
    doctor.project.resources["hierarchy/organizations/1:getIamPolicy"] = 403
    doctor.project.grants = {}
    code, lines = doctor.run()
    unread = "those of organizations/1 may, which cannot be read"
    assert code == 2 and [unread in line for line in lines[1::3]] == [True, True]


def test_a_subnetwork_of_a_shared_network_is_used(doctor: Doctor) -> None:
    shared = SUBNETWORK.replace("acme-dev", "host-project")
    doctor.project.grants[shared] = [("roles/compute.networkUser", AGENT)]
    doctor.project.lacking = set()
    doctor.sign_in(doctor.apis.write_key(DEPLOYER))
    doctor.finds_nothing(f"serviceAccount:{DEPLOYER}", **SHARED)
    assert ("POST", f"compute/{shared}/testIamPermissions") in doctor.project.requests
    doctor.project.lacking = {"compute.subnetworks.use"}
    _, lines = doctor.run()
    assert lines[2] == (
        "  gcloud compute networks subnets add-iam-policy-binding jobs --region=europe-west4 --project=host-project "
        f"--member=serviceAccount:{DEPLOYER} --role=roles/compute.networkUser"
    )


def test_an_identity_pool_signs_in(doctor: Doctor) -> None:
    doctor.project.lacking = {"iam.serviceAccounts.actAs"}
    doctor.sign_in(doctor.apis.write_federation("ci", DEPLOYER))
    doctor.finds_nothing(f"serviceAccount:{DEPLOYER}", **NAMED)
    pool = "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/*"
    doctor.sign_in(doctor.apis.write_federation("ci"))
    doctor.finds_nothing("an account that its credentials do not name", identity={"submitters": [pool]})


def test_nobody_is_told_to_write_a_member_that_is_not_known(doctor: Doctor) -> None:
    doctor.project.lacking = {"iam.serviceAccounts.actAs", "iam.serviceAccounts.create"}
    doctor.sign_in(doctor.apis.write_federation("ci"))
    doctor.prepare(identity={"submitters": ["user:bob@example.com"]})
    code, lines = doctor.run()
    assert code == 1 and not [line for line in lines if "MEMBER" in line]
    assert [line for line in lines if line.startswith("  ") and "account that is signed in" in line] == [
        "  # grant roles/iam.serviceAccountAdmin on project acme-dev to the account that is signed in"
    ]
    assert [line.partition(":")[0] for line in lines[1:] if not line.startswith(" ")] == ["problem", "cannot tell"]


def test_a_new_project_is_no_problem(doctor: Doctor) -> None:
    doctor.project.disabled = {"cloudbilling"}
    doctor.sign_in(doctor.apis.write_key(DEPLOYER))
    doctor.prepare()
    code, lines = doctor.run()
    assert code == 0 and [line.partition(":")[0] for line in lines] == [
        "stack dev, project acme-dev, as serviceAccount",
        "note",
        "  gcloud services enable cloudbilling.googleapis.com --project=acme-dev",
    ]
