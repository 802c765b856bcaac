"""Jobs completed: what a declaration leaves out is filled in before a preview shows it."""

from typing import Any

import pytest
from vertex_training.jobs.resources import complete as complete_job
from vertex_training.plan.training import Defaults

from tests.vertex_api.jobs import ABSENT, custom_job, edited, job_of, tuning_pipeline
from vertex_api.job import parse_job
from vertex_api.names import CUSTOM_JOB, KINDS, TRAINING_PIPELINE, Kind

FOLDER = "gs://staging/digits"
DEFAULTS = Defaults("gs://staging")
KEYS = "projects/acme-dev/locations/europe-west4/keyRings/k/cryptoKeys"


def complete(kind: Kind, spec: dict[str, Any], rerun: str = "") -> Any:
    return complete_fields(kind, spec, rerun)[kind.spec_field]


def complete_fields(kind: Kind, spec: Any, rerun: str = "", defaults: Defaults = DEFAULTS, name: str = "digits") -> Any:
    canonical, problems = parse_job(kind, spec)
    assert canonical, problems
    return complete_job(canonical, defaults, name, rerun).fields


def output(kind: Kind, spec: dict[str, Any], rerun: str = "") -> str:
    return str(complete(kind, spec, rerun)["baseOutputDirectory"]["outputUriPrefix"])


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_non_empty_pool_defaults_to_one_replica(kind: Kind) -> None:
    field = kind.spec_field
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "x"}}
    spec = edited(job_of(kind), field, "workerPoolSpecs", to=[pool, {}, {**pool, "replicaCount": 3}])
    pools = complete(kind, spec)["workerPoolSpecs"]
    assert pools == [{**pool, "replicaCount": 1}, {}, {**pool, "replicaCount": 3}]


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_every_run_has_its_own_output_folder(kind: Kind) -> None:
    spec = job_of(kind)
    folders = [
        output(kind, spec),
        output(kind, spec, rerun="1"),
        output(kind, spec | {"labels": {"a": "b"}}),
    ]
    assert all(folder.startswith(f"{FOLDER}/") for folder in folders)
    assert len(set(folders)) == 3
    assert output(kind, spec) == folders[0]


def test_declaring_a_default_makes_the_same_job() -> None:
    silent = edited(custom_job(), "jobSpec", "workerPoolSpecs", 0, "replicaCount", to=ABSENT)
    assert complete_fields(CUSTOM_JOB, silent) == complete_fields(CUSTOM_JOB, custom_job())
    floats = edited(custom_job(), "jobSpec", "workerPoolSpecs", 0, "replicaCount", to=1.0)
    assert complete_fields(CUSTOM_JOB, floats) == complete_fields(CUSTOM_JOB, custom_job())


def test_an_output_folder_that_is_declared_is_kept() -> None:
    spec = edited(custom_job(), "jobSpec", "baseOutputDirectory", to={"outputUriPrefix": "gs://mine/out"})
    assert output(CUSTOM_JOB, spec, rerun="2") == "gs://mine/out"


def test_the_given_spec_is_not_changed() -> None:
    spec = custom_job()
    complete(CUSTOM_JOB, spec)
    assert spec == custom_job()


def test_a_pipeline_task_gets_the_same_job_defaults() -> None:
    defaults = Defaults("gs://staging", {"network": "projects/1/global/networks/n"}, {"stage": "dev"})
    whole = complete_fields(TRAINING_PIPELINE, tuning_pipeline(), defaults=defaults, name="search")
    inputs = whole["trainingTaskInputs"]
    assert inputs["trialJobSpec"]["network"] == "projects/1/global/networks/n"
    assert inputs["trialJobSpec"]["baseOutputDirectory"]["outputUriPrefix"].startswith("gs://staging/search/")
    assert whole["labels"] == {"stage": "dev"}
    assert {**inputs, "trialJobSpec": custom_job()["jobSpec"]} == tuning_pipeline()["trainingTaskInputs"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_persistent_resource_job_needs_no_machine(kind: Kind) -> None:
    field = kind.spec_field
    spec = edited(job_of(kind), field, "persistentResourceId", to="training-pool")
    spec = edited(spec, field, "workerPoolSpecs", 0, "machineSpec", to=ABSENT)
    whole = complete(kind, spec)
    assert whole["persistentResourceId"] == "training-pool"
    assert "machineSpec" not in whole["workerPoolSpecs"][0]


def test_foundation_defaults_fill_undeclared_fields() -> None:
    defaults = Defaults(
        "gs://staging",
        {"serviceAccount": "trainer@p.iam.gserviceaccount.com", "network": "projects/1/global/networks/n"},
        {"team": "vision", "stage": "dev"},
        f"{KEYS}/c",
    )
    silent = complete_fields(CUSTOM_JOB, custom_job(), defaults=defaults)
    assert silent["jobSpec"]["serviceAccount"] == "trainer@p.iam.gserviceaccount.com"
    assert silent["labels"] == {"team": "vision", "stage": "dev"}
    assert silent["encryptionSpec"] == {
        "kmsKeyName": "projects/acme-dev/locations/europe-west4/keyRings/k/cryptoKeys/c"
    }
    said = edited(custom_job(), "jobSpec", "serviceAccount", to="own@p.iam.gserviceaccount.com")
    said = {
        **said,
        "labels": {"stage": "prod"},
        "encryptionSpec": {"kmsKeyName": f"{KEYS}/d"},
    }
    own = complete_fields(CUSTOM_JOB, said, defaults=defaults)
    assert own["jobSpec"]["serviceAccount"] == "own@p.iam.gserviceaccount.com"
    assert own["jobSpec"]["network"] == "projects/1/global/networks/n"
    assert own["labels"] == {"team": "vision", "stage": "prod"}
    assert own["encryptionSpec"]["kmsKeyName"].endswith("/d")
