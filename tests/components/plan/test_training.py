"""Training: what it leaves out is filled in, and the requests of a schedule are those of the jobs themselves."""

import re
from pathlib import Path
from typing import Any

import pytest
from vertex_training.jobs.job import as_submitted
from vertex_training.plan.training import Defaults, Timetable, parse_spec

from tests.corpus.specs import Spec, settings, specs
from tests.vertex_api.jobs import ABSENT, custom_job, edited, job_of, tuning_job, tuning_pipeline
from vertex_api.job import Job, parse_job
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, KINDS, TRAINING_PIPELINE, Kind
from vertex_api.schedules import RUN_ID, ScheduledJob

FOLDER = "gs://staging/digits"
DEFAULTS = Defaults("gs://staging")
KEYS = "projects/acme-dev/locations/europe-west4/keyRings/k/cryptoKeys"


def job_spec(kind: Kind, spec: dict[str, Any], rerun: str = "") -> Any:
    return complete_fields(kind, spec, rerun)[kind.spec_field]


def complete_fields(kind: Kind, spec: Any, rerun: str = "", defaults: Defaults = DEFAULTS, name: str = "digits") -> Any:
    canonical, problems = parse_job(kind, spec)
    assert canonical, problems
    return as_submitted(canonical, defaults, name, rerun).fields


def output(kind: Kind, spec: dict[str, Any], rerun: str = "") -> str:
    return str(job_spec(kind, spec, rerun)["baseOutputDirectory"]["outputUriPrefix"])


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_non_empty_pool_defaults_to_one_replica(kind: Kind) -> None:
    field = kind.spec_field
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "x"}}
    spec = edited(job_of(kind), field, "workerPoolSpecs", to=[pool, {}, {**pool, "replicaCount": 3}])
    pools = job_spec(kind, spec)["workerPoolSpecs"]
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
    job_spec(CUSTOM_JOB, spec)
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
    whole = job_spec(kind, spec)
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


LABELLED = Defaults("gs://staging", {"serviceAccount": "a@p.iam.gserviceaccount.com"}, {"team": "vision"})
CLEAN = [spec for spec in specs() if not spec.refused]
ARGS = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")


def requests(id_: str, jobs: dict[str, Job]) -> tuple[ScheduledJob, ...]:
    return Timetable("nightly", "", tuple(jobs)).requests(id_, jobs, LABELLED)


def canonical(kind: Kind, spec: dict[str, Any]) -> Job:
    found, problems = parse_spec(kind, spec)
    assert found, problems
    return found


def without_run(fields: Any, spec: Job) -> dict[str, Any]:
    """A request without what tells a scheduled run from a job of `pulumi up`."""
    folder = {**spec.replace(fields).job_spec}.pop("baseOutputDirectory")
    text = repr({**fields, "displayName": "", "labels": {}}).replace(repr(folder), "FOLDER")
    return {"text": text}


@pytest.mark.parametrize("spec", CLEAN, ids=lambda spec: spec.name)
def test_a_request_is_that_of_the_job_itself(spec: Spec, tmp_path: Path) -> None:
    spec.declare(tmp_path)
    for job in settings(tmp_path).jobs:
        known = job.job
        (scheduled,) = requests("t_dev_nightly", {job.name: known})
        submitted = as_submitted(known, LABELLED, job.name).fields
        assert scheduled.collection == known.kind.collection
        assert without_run(scheduled.body, known) == without_run(submitted, known)
        assert scheduled.body["displayName"] == f"{submitted['displayName']}-{RUN_ID}"
        own = {"pulumi_schedule": "t_dev_nightly", "pulumi_name": re.sub("[.]", "-", job.name)}
        assert scheduled.body["labels"] == {**submitted["labels"], **own}


def test_jobs_of_a_run_have_own_folders() -> None:
    declared = edited(custom_job(), "jobSpec", "baseOutputDirectory", to={"outputUriPrefix": "gs://mine/a/"})
    jobs = {
        "search": canonical(HYPERPARAMETER_TUNING_JOB, tuning_job()),
        "train": canonical(CUSTOM_JOB, custom_job()),
        "export": canonical(CUSTOM_JOB, declared),
    }
    search, train, export = requests("id", jobs)
    key, prefix = "baseOutputDirectory", "outputUriPrefix"
    assert search.body["trialJobSpec"][key][prefix] == f"gs://staging/nightly/{RUN_ID}/search"
    assert train.body["jobSpec"][key][prefix] == f"gs://staging/nightly/{RUN_ID}/train"
    assert export.body["jobSpec"][key][prefix] == f"gs://mine/a/{RUN_ID}/export"


def test_an_earlier_job_s_model_folder_is_known() -> None:
    args = ["--from=${jobs.train.modelDir}", "--name=${jobs.train.name}"]
    jobs = {
        "train": canonical(CUSTOM_JOB, custom_job()),
        "export": canonical(CUSTOM_JOB, edited(custom_job(), *ARGS, to=args)),
    }
    _, export = requests("id", jobs)
    assert export.body["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == [
        f"--from=gs://staging/nightly/{RUN_ID}/train/model/",
        "--name=${jobs.train.name}",
    ]
