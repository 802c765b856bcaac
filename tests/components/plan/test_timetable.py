"""The requests of a schedule: those of the jobs themselves, with a name and a folder of its own for each run."""

import re
from pathlib import Path
from typing import Any

import pytest
from vertex_training.jobs.resources import complete
from vertex_training.plan.training import Defaults, Timetable, read

from tests.corpus.specs import Spec, settings, specs
from tests.vertex_api.jobs import custom_job, edited, tuning_job
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, Kind
from vertex_api.schedules import RUN_ID, ScheduledJob

DEFAULTS = Defaults("gs://staging", {"serviceAccount": "a@p.iam.gserviceaccount.com"}, {"team": "vision"})
CLEAN = [spec for spec in specs() if not spec.refused]
ARGS = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")


def requests(id_: str, jobs: dict[str, Job]) -> tuple[ScheduledJob, ...]:
    return Timetable("nightly", "", tuple(jobs)).requests(id_, jobs, DEFAULTS)


def canonical(kind: Kind, spec: dict[str, Any]) -> Job:
    found, problems = read(kind, spec, is_adopted=False)
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
        submitted = complete(known, DEFAULTS, job.name).fields
        assert scheduled.collection == known.kind.collection
        assert without_run(scheduled.body, known) == without_run(submitted, known)
        assert scheduled.body["displayName"] == f"{submitted['displayName']}-{RUN_ID}"
        own = {"pulumi_schedule": "t_dev_nightly", "pulumi_name": re.sub("[.]", "-", job.name)}
        assert scheduled.body["labels"] == {**submitted["labels"], **own}


def test_each_job_of_a_run_has_a_folder_of_its_own() -> None:
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
