"""docs/adopting.md: a stack on what exists already leaves it as it is, and can take it over."""

import json
from typing import Any

from tests.engine.cloud import CloudProject

REPOSITORY = "projects/images/locations/europe/repositories/team"
ACCOUNT = "trainer@other.iam.gserviceaccount.com"
MADE = "gcp:storage/bucket:Bucket"


def list_created(cloud: CloudProject) -> list[tuple[str, dict[str, Any]]]:
    """Return kind and inputs of each created resource, without the services."""
    made = [line for line in cloud.read_provider_calls() if line["operation"] == "create"]
    found = [(line["type"].rpartition(":")[2], line["inputs"]) for line in made]
    return [(kind, inputs) for kind, inputs in found if kind != "Service"]


def test_existing_resources_get_grants_and_stay_unchanged(cloud: CloudProject) -> None:
    cloud.stack |= {
        "vertex-training:registry": {"existing": REPOSITORY, "legacyBuckets": ["artifacts.old.appspot.com"]},
        "vertex-training:identity": {"existing": ACCOUNT},
        "vertex-training:bucket": {"existing": "theirs", "location": "europe-west4"},
    }
    cloud.declare()
    cloud.up()
    assert cloud.outputs()["jobs"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
    cloud.assert_no_changes()
    kinds = [kind for kind, _ in list_created(cloud)]
    kept = ["IAMMember", "IAMMember", "WorkloadIdentityServiceAgent"]
    grants = [*["BucketIAMMember"] * 5, "IAMMember", *["RepositoryIamMember"] * 2]
    assert sorted(kinds) == sorted([*grants, *kept])
    on = {(inputs.get("repository"), inputs.get("bucket")) for _, inputs in list_created(cloud)}
    assert on == {("team", None), (None, "theirs"), (None, "artifacts.old.appspot.com"), (None, None)}
    spec = cloud.resources()["train"]["inputs"]["spec"]["jobSpec"]
    assert spec["serviceAccount"] == ACCOUNT
    assert spec["baseOutputDirectory"]["outputUriPrefix"].startswith("gs://theirs/vertex-training/dev/train/")

    cloud.destroy()
    gone = [line["type"].rpartition(":")[2] for line in cloud.read_provider_calls() if line["operation"] == "delete"]
    assert sorted(kind for kind in gone if kind != "Service") == sorted(grants)


def test_a_stack_can_adopt_an_existing_bucket(cloud: CloudProject) -> None:
    cloud.declarations = {}
    cloud.declare()
    file = cloud.root / "adopt.json"
    cloud.pulumi("preview", "--import-file", str(file), "--stack", "dev")
    planned = json.loads(file.read_text())
    (bucket,) = [item for item in planned["resources"] if item["type"] == MADE]
    name = "acme-dev-vertex-training-dev"
    assert bucket["id"] == "<PLACEHOLDER>"
    bucket["id"] = name
    parents = [
        item for item in planned["resources"] if item.get("component") and item["name"] in ("training", "gcp", "bucket")
    ]
    file.write_text(json.dumps({**planned, "resources": [*parents, bucket]}))
    there = {
        "name": name,
        "project": "acme-dev",
        "location": "EUROPE-WEST4",
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": "enforced",
        "forceDestroy": False,
    }
    cloud.environment["GCP_STANDIN_EXISTS"] = json.dumps({name: there})
    cloud.pulumi("import", "--file", str(file), "--yes", "--protect=false", "--generate-code=false", "--stack", "dev")
    cloud.up()
    assert "Bucket" not in [kind for kind, _ in list_created(cloud)]
    cloud.assert_no_changes()
