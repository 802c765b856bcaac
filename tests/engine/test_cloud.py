"""The target gcp through the real engine: a stand-in for the gcp provider, the emulator in place of Vertex AI."""

import re
from pathlib import Path

import pytest
from vertex_training.review.document import PreviewDocument
from vertex_training.review.markdown import render_markdown
from vertex_training.review.review import build_review
from vertex_training.settings.settings import NUMBER

from tests import access_page
from tests.engine.cloud import CloudProject, create_cloud_project
from tests.engine.golden import load_golden_steps
from tests.vertex_api.futures import MACHINE as MACHINE_OF_THE_FUTURE
from tests.vertex_api.futures import future_job
from tests.vertex_emulator.running import RunningEmulator

KEY = "projects/acme-dev/locations/europe-west4/keyRings/training/cryptoKeys/jobs"

MACHINE = {"machineType": "n1-standard-4"}


def test_the_first_cloud_preview_knows_all_inputs(cloud: CloudProject) -> None:
    cloud.stack |= {
        "vertex-training:identity": {"submitters": ["group:ml@example.com"], "secrets": ["hf-token"]},
        "vertex-training:alerts": {"channels": ["ml@example.com"]},
        "vertex-training:kmsKey": KEY,
        "vertex-training:labels": {"team": "vision"},
        "vertex-training:tensorboard": {},
        "vertex-training:persistentResource": {"name": "training", "resourcePools": [{"machineSpec": MACHINE}]},
    }
    cloud.job["jobSpec"]["persistentResourceId"] = "training"
    cloud.declare()
    shown, steps = cloud.preview()
    assert steps == load_golden_steps("gcp-first")
    resources = shown[: shown.index("--outputs:--")]
    # What Google will call the jobs that are waited for, and the TensorBoard.
    assert set(_find_unknowns(resources)) == {"train", "tensorboard"}
    for known in (
        "serviceAccount:service-123456789012@gcp-sa-aiplatform-cc.iam.gserviceaccount.com",
        "serviceAccount:vertex-training-dev@acme-dev.iam.gserviceaccount.com",
        '"acme-dev-vertex-training-dev"',
        'outputUriPrefix: "gs://acme-dev-vertex-training-dev/vertex-training/dev/train/',
        'serviceAccount      : "vertex-training-dev@acme-dev.iam.gserviceaccount.com"',
        'persistentResourceId: "training"',
        'tensorboard         : "${tensorboard.name}"',
        # n1-standard-4 as in test_cost_and_quota.py; the job on it costs nothing of its own
        "Cost in europe-west4: 0.27 USD an hour, 0.00 USD at most, persistentResource without an end",
    ):
        assert known in shown


@pytest.fixture(scope="class")
def first_up(tmp_path_factory: pytest.TempPathFactory, vertex: RunningEmulator) -> tuple[CloudProject, str]:
    """A stack that is up, and what its first `up` has printed, for which IAM did not know the accounts at once."""
    cloud = create_cloud_project(tmp_path_factory.mktemp("cloud"), vertex)
    cloud.environment["GCP_STANDIN_UNKNOWN"] = "1"
    cloud.stack |= {
        "vertex-training:tensorboard": {},
        "vertex-training:alerts": {"channels": ["ml@example.com"]},
        "vertex-training:identity": {"secrets": ["hf-token"]},
        "vertex-training:builder": {"cloudBuild": {}},
    }
    cloud.declare()
    return cloud, cloud.up()


class TestFirstUp:
    """A stack of the target gcp after its first `up`."""

    def test_services_come_first_and_grants_before_jobs(self, first_up: tuple[CloudProject, str]) -> None:
        cloud, output = first_up
        assert "IAM does not know the account yet; trying again for up to" in output
        made = cloud.read_provider_calls()
        kinds = [line["type"].rpartition(":")[2] for line in made if line["operation"] == "create"]
        services = [index for index, kind in enumerate(kinds) if kind == "Service"]
        assert services == list(range(len(services))), kinds
        assert [line["operation"] for line in made].count("refuse") == 4  # once for each account
        resources = cloud.resources()
        needed = {urn.rpartition("::")[2] for urn in resources["job-names"]["dependencies"]}
        assert {"access-pull-vertex", "access-pull-custom-code", "bucket-write", "secrets-hf-token", "alerts"} <= needed
        for name, resource in resources.items():
            if resource["type"].endswith("vertex-training:CustomJob"):
                assert any(urn.endswith("::job-names") for urn in resource["dependencies"]), name
        outputs = cloud.outputs()["jobs"]["train"]
        assert outputs["state"] == "JOB_STATE_SUCCEEDED"
        board = cloud.vertex.get(outputs["name"])["jobSpec"]["tensorboard"]
        assert board == "projects/acme-dev/locations/europe-west4/tensorboards/77"
        # What the stack has bound is what the page on access says of one that asks for nothing else.
        who = access_page.principals("123456789012", "acme-dev", "vertex-training-dev")
        on = {"vertex-training-dev": "the repository", "acme-dev": "the project"}
        on |= {"acme-dev-vertex-training-dev": "the bucket", "hf-token": "`identity.secrets`"}
        bound = access_page.made([line["inputs"] for line in made if line["operation"] == "create"], who, on)
        assert bound == {grant for grant in access_page.grants() if grant[2].removeprefix("folders of ") in on.values()}

    def test_a_machine_edit_replaces_only_the_job(self, first_up: tuple[CloudProject, str]) -> None:
        cloud, _ = first_up
        (pool,) = cloud.job["jobSpec"]["workerPoolSpecs"]
        pool["machineSpec"] = {"machineType": "n1-standard-8"}
        cloud.declare()
        assert cloud.steps() == load_golden_steps("gcp-machine")

    def test_labels_are_updated_in_place(self, first_up: tuple[CloudProject, str]) -> None:
        cloud, _ = first_up
        (pool,) = cloud.job["jobSpec"]["workerPoolSpecs"]
        pool["machineSpec"] = MACHINE
        cloud.stack["vertex-training:labels"] = {"team": "vision"}
        cloud.declare()
        assert cloud.update().steps == load_golden_steps("gcp-labels")
        cloud.assert_no_changes()


def test_the_first_up_of_dev_and_prod_passes(tmp_path: Path, vertex: RunningEmulator) -> None:
    """With every option, in two fresh projects, where all that is new is unknown to the first attempt."""
    dev, prod = (create_cloud_project(_create_folder(tmp_path / name), vertex, name) for name in ("dev", "prod"))
    pools = [{"machineSpec": MACHINE}]
    zone = {"domain": "corp.", "targetProject": "dns-host", "targetNetwork": "n"}
    every = {
        "vertex-training:kmsKey": KEY,
        "vertex-training:bucket": {"kmsKey": KEY, "deleteAfterDays": 30},
        "vertex-training:identity": {"submitters": ["group:ml@example.com"], "secrets": ["hf-token"]},
        "vertex-training:alerts": {"channels": ["ml@example.com"]},
        "vertex-training:tensorboard": {},
        "vertex-training:labels": {"team": "vision"},
        "vertex-training:persistentResource": {"name": "training", "resourcePools": pools},
    }
    dev.stack |= every | {
        "vertex-training:registry": {"repository": "training", "kmsKey": KEY, "protect": True},
        "vertex-training:network": {"attachment": {"subnetwork": "sub", "dnsPeering": [zone]}},
    }
    prod.stack |= every | {
        "vertex-training:project": "acme-prod",
        "vertex-training:projectNumber": "210987654321",
        "vertex-training:registry": {"existing": "projects/acme-dev/locations/europe-west4/repositories/training"},
        "vertex-training:network": {"peering": {"network": "projects/1/global/networks/n", "prefixLength": 16}},
    }
    for cloud in (dev, prod):
        # One world: what dev has made is there for prod, and names collide.
        cloud.environment |= {"GCP_STANDIN_UNKNOWN": "1", "GCP_STANDIN_RECORD": str(dev.record)}
        cloud.declare()
        output = cloud.up()
        for reason in ("IAM does not know the account yet", "Cloud KMS does not know the grant of the key yet"):
            assert f"{reason}; trying again for up to" in output
        assert cloud.outputs()["jobs"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
        cloud.assert_no_changes()


def test_mistakes_in_the_stack_are_one_line_each(cloud: CloudProject) -> None:
    cloud.stack |= {
        "vertex-training:projectNumber": "acme",
        "vertex-training:bucket": {"location": "us-east1"},
        "vertex-training:registry": {"existing": "a/b"},
        "vertex-training:identity": {"acount": "x"},
    }
    cloud.declare()
    summary = cloud.up(fails=True).partition("Diagnostics:")[2]
    for line in (
        "4 problems in what is declared:",
        'vertex-training:projectNumber: "acme" is not a project\'s number',
        'vertex-training:bucket.location: "us-east1" must be the region of the jobs',
        'vertex-training:registry.existing: "a/b" is not projects/P/locations/L/',
        "vertex-training:identity.acount: unknown field; did you mean account?",
    ):
        assert summary.count(line) == 1, summary
    assert not cloud.record.exists()


def test_a_number_that_cannot_be_looked_up_is_one_error(cloud: CloudProject) -> None:
    """Where its number cannot be looked up, that is the only error; where it can: tests/engine/test_new.py."""
    del cloud.stack["vertex-training:project"], cloud.stack["vertex-training:projectNumber"]
    cloud.stack |= {"gcp:project": "acme-unknown", "gcp:region": cloud.stack.pop("vertex-training:region")}
    cloud.declare()
    refused = cloud.pulumi("preview", "--stack", "dev", fails=True)
    (line,) = [
        line for line in map(str.strip, refused.splitlines()) if line.startswith(f"error: {NUMBER}: is not given")
    ]
    assert "does not tell that of acme-unknown" in line and "Error 403: The caller does not have permission" in line


def test_a_job_of_the_future_goes_up_and_stays(cloud: CloudProject) -> None:
    future, places = future_job()
    spec = cloud.job["jobSpec"]
    spec["workerPoolSpecs"][0]["machineSpec"], spec["pacing"] = MACHINE_OF_THE_FUTURE, future["jobSpec"]["pacing"]
    cloud.declare()
    assert "to submit a job all the same, lifecycle: {allow: [FIELD]}" in cloud.up(fails=True)
    cloud.declarations["customJobs"]["train"].setdefault("lifecycle", {})["allow"] = places
    cloud.declare()
    document = PreviewDocument.parse(cloud.pulumi("preview", "--json", "--stack", cloud.name), "preview")
    review = render_markdown(build_review(document))
    for place in places:
        assert f"⚠️ refused by the rules on file, and allowed by `train`: `{place}`" in review
        assert f"{place}: allowed by the job" in review
    assert "no price on file for" in review
    cloud.up()
    name = cloud.outputs()["jobs"]["train"]["name"]
    held = cloud.vertex.get(name)["jobSpec"]
    assert held["pacing"] == spec["pacing"]
    assert held["workerPoolSpecs"][0]["machineSpec"] == MACHINE_OF_THE_FUTURE
    cloud.assert_no_changes("--refresh")


def _create_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _find_unknowns(text: str) -> list[str]:
    return re.findall(r"(\w+) *: \[unknown\]", text)
