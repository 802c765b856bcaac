"""What doctor takes a stack to make, and where: the same as what the foundation registers, for each of these stacks."""

from pathlib import Path
from typing import Any

import pytest
from vertex_training.doctor.findings import Place
from vertex_training.doctor.needs import Needs
from vertex_training.program import create_foundation
from vertex_training.runtime.refusals import DEPLOYER
from vertex_training.stack import Images, Jobs, Packages, Schedules, Sources

from tests import access_page
from tests.components.targets.gcp.graph import Graph, graph
from tests.components.targets.gcp.test_foundation import ALL, GRANTED, JOBS, KEY, STACKS, ZONE, settings, short_module

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
NIGHTLY = """\
  nightly:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: "${images.trainer}"}
    lifecycle: {run: scheduled}
schedules: {night: {cron: "0 2 * * *", job: nightly}}
"""
THEIRS = {
    "identity": {"existing": "t@other.iam.gserviceaccount.com", "agentRoles": False},
    "registry": {"existing": "projects/images/locations/us/repositories/r"},
    "bucket": {"existing": "theirs", "location": "europe-west4"},
}
FOREIGN_KEY = {"registry": {"project": "images", "kmsKey": f"{KEY}-images"}, "kmsKey": KEY}
SCHEDULERS = {"scheduling": {"scheduler": {"existing": "s@acme-dev.iam.gserviceaccount.com"}, "workflow": {}}}
ATTACHED = {"network": {"attachment": {"existing": "projects/host/regions/europe-west4/networkAttachments/a"}}}
OWN_BUILDER = {"builder": {"cloudBuild": {"serviceAccount": "b@acme-dev.iam.gserviceaccount.com"}}}
SUBNETWORK = "projects/net-host/regions/europe-west4/subnetworks/jobs"
ELSEWHERE: list[dict[str, Any]] = [
    {"network": {"attachment": {"subnetwork": SUBNETWORK, "dnsPeering": [ZONE], **grant}}}
    for grant in ({}, {"grant": False})
]
UNASKED = {"identity": {"createAgents": False}}
MORE: list[dict[str, Any]] = [
    *ELSEWHERE,
    UNASKED,
    THEIRS,
    FOREIGN_KEY,
    SCHEDULERS,
    {**THEIRS, **SCHEDULERS},
    ATTACHED,
    OWN_BUILDER,
]


def place_of(kind: str, inputs: dict[str, Any], needs: Needs) -> Place:
    """Where the policy is that lets the deployer make a resource with these inputs."""
    own = Place("project", "acme-dev")
    created = {f"projects/acme-dev/serviceAccounts/{email}" for email in needs.created_accounts}
    if key := inputs.get("cryptoKeyId"):
        return Place("key", key)
    if secret := inputs.get("secretId"):
        return Place("secret", f"projects/{inputs['project']}/secrets/{secret}")
    if account := inputs.get("serviceAccountId"):
        return own if account in created else Place("account", account.rpartition("/")[2])
    if kind.startswith("artifactregistry.") or kind.endswith("TrainingImage"):
        assert needs.repository
        if inputs.get("project") == "images" and needs.repository_project != "images":  # of `alsoRead`
            return Place(
                "repository", f"projects/images/locations/{inputs['location']}/repositories/{inputs['repository']}"
            )
        return needs.repository
    if "tableId" in inputs:
        return Place("project", inputs["project"])
    if kind in ("storage.BucketIAMMember", "vertex-training.PythonPackage"):
        bucket = inputs.get("bucket", needs.bucket)
        return own if bucket == "acme-dev-team-dev" == needs.bucket else Place("bucket", bucket)
    if kind == "servicenetworking.Connection":
        return Place("project", inputs["network"].split("/")[1])
    return Place("project", inputs.get("project", "acme-dev"))


def registered(made: Graph, needs: Needs) -> set[tuple[str, Place]]:
    found = set()
    for name, inputs in made.inputs.items():
        token = made.requests[name].type
        if made.requests[name].custom:
            kind = f"{short_module(token)}.{token.rpartition(':')[2]}"
            found.add((kind, place_of(kind, inputs, needs)))
    return found


@pytest.mark.parametrize("jobs", [JOBS, JOBS + NIGHTLY + GRANTED], ids=["jobs", "all"])
@pytest.mark.parametrize("stack", [*STACKS, {"network": ALL["network"]}, *MORE])
def test_needs_are_what_the_program_registers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: dict[str, Any], jobs: str
) -> None:
    known = settings(tmp_path, jobs, **stack)
    monkeypatch.chdir(tmp_path)

    def program() -> None:
        ground = create_foundation(known)
        sources = Sources(Images(known, ground), Packages(known, ground))
        Jobs(known, ground, sources)
        Schedules(known, ground, sources)

    later = {"TrainingImage": {"digest": "sha256:1"}, "Completion": {"results": {"train": {}}}}
    later["CustomJob"] = {"run": {"name": "1", "state": "JOB_STATE_PENDING", "page": "", "logs": ""}}  # type: ignore[dict-item]
    needs = Needs(known)
    assert {(kind, place) for at, kind, place in needs.made() if at == "resource"} == registered(
        graph(program, later), needs
    )


def test_roles_of_the_deployer_equal_the_documented_ones() -> None:
    rows = {(role.role, kind, role.on) for role in DEPLOYER for kind in role.permissions}
    assert rows == access_page.deployer_roles()
