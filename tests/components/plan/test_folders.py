"""Where jobs may write in the bucket of their stack: what is granted, and what is refused before it could be denied."""

import json
from pathlib import Path

import pytest
from vertex_training.plan.folders import MAX_OTHERS
from vertex_training.plan.training import Training
from vertex_training.settings.settings import Settings

from tests.components.projects import CLOUD_INCLUDING, INCLUDING, load, problems
from tests.vertex_api.jobs import custom_job
from vertex_api.job import Job
from vertex_api.names import CUSTOM_JOB

OWN = "acme-dev-team-dev"
"""The bucket that the stack creates; its folder there is `team/dev/`."""


def stack(*folders: str, **bucket: str) -> str:
    given = bucket | ({"writableFolders": [*folders]} if folders else {})
    return f"{CLOUD_INCLUDING}  vertex-training:bucket: {json.dumps(given)}\n"


def declared(*folders: str, account: str | None = None) -> str:
    """Jobs, one for each output directory."""
    jobs = {}
    for number, folder in enumerate(folders):
        job = custom_job()
        job["jobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": folder}
        jobs[f"job{number}"] = job
        if account:
            job["jobSpec"]["serviceAccount"] = account
    return json.dumps({"customJobs": jobs})


def others(settings: Settings) -> tuple[str, ...]:
    assert settings.plan.folders
    return settings.plan.folders.others


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        ([f"gs://{OWN}/out"], ("out/",)),
        ([f"gs://{OWN}/out/", f"gs://{OWN}/out/a", f"gs://{OWN}/out2"], ("out/", "out2/")),
        ([f"gs://{OWN}/team/dev/mine", "gs://elsewhere/a", f"gs://{OWN}x/a"], ()),
        ([f"gs://{OWN}/team/prod"], ("team/prod/",)),
    ],
)
def test_declared_folders_of_the_bucket_are_granted(tmp_path: Path, folders: list[str], expected: object) -> None:
    assert others(load(tmp_path, stack(), jobs=declared(*folders))) == expected


def test_folders_of_an_existing_bucket_are_granted(tmp_path: Path) -> None:
    settings = load(tmp_path, stack("shared", "a/b/", existing="theirs"), jobs=declared("gs://theirs/out"))
    assert others(settings) == ("a/b/", "out/", "shared/")
    assert others(load(tmp_path, stack("/", "a"), jobs=declared(f"gs://{OWN}/"))) == ("/",)


def test_a_folder_is_granted_up_to_references(tmp_path: Path) -> None:
    jobs = declared(f"gs://{OWN}/runs/${{images.run}}/a", "gs://${images.run}/a", f"gs://{OWN}-${{images.run}}")
    assert others(load(tmp_path, stack() + "  vertex-training:images: {run: {uri: a}}\n", jobs=jobs)) == ("runs/",)


def test_jobs_of_another_account_are_not_of_interest(tmp_path: Path) -> None:
    theirs, own = (f"{name}@acme-dev.iam.gserviceaccount.com" for name in ("theirs", "team-dev"))
    assert others(load(tmp_path, stack(), jobs=declared(f"gs://{OWN}", account=theirs))) == ()
    assert others(load(tmp_path, stack(), jobs=declared(f"gs://{OWN}/a", account=own))) == ("a/",)


@pytest.mark.parametrize("folder", ["", "/", "/team", "/team/"])
def test_a_folder_of_all_stacks_is_refused(tmp_path: Path, folder: str) -> None:
    (problem,) = problems(tmp_path, stack(), jobs=declared(f"gs://{OWN}{folder}"))
    assert "customJobs.job0.jobSpec.baseOutputDirectory.outputUriPrefix: " in problem
    assert "holds the folders of stacks; choose a folder beside them" in problem


@pytest.mark.parametrize("folder", ["packages", "build-sources/mine"])
def test_folders_of_packages_and_sources_are_refused(tmp_path: Path, folder: str) -> None:
    (problem,) = problems(tmp_path, stack(), jobs=declared(f"gs://{OWN}/team/dev/{folder}"))
    assert problem.endswith(f'Pulumi alone writes to "team/dev/{folder}/"; choose another folder')


@pytest.mark.parametrize("name", ["packages", "build-sources"])
def test_no_job_is_named_as_a_closed_folder(tmp_path: Path, name: str) -> None:
    message = f'"{name}" is a folder of the bucket that jobs may not write to; choose another name'
    (problem,) = problems(tmp_path, INCLUDING, jobs=json.dumps({"customJobs": {name: custom_job()}}))
    assert problem.endswith(message)
    scheduled = {**custom_job(), "lifecycle": {"run": "scheduled"}}
    schedules = {name: {"job": "night", "cron": "0 3 * * *"}}
    (problem, *_) = problems(
        tmp_path, INCLUDING, jobs=json.dumps({"customJobs": {"night": scheduled}, "schedules": schedules})
    )
    assert problem.endswith(message)


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("team/dev/packages", '"team/dev/packages/" is in the folder of the stack, team/dev/; remove it'),
        ("team/dev", '"team/dev/" is in the folder of the stack, team/dev/; remove it'),
        ("team", '"team/" holds the folder of the stack, team/dev/; name another one, or "/" for all'),
        ("gs://a/b", '"gs://a/b" is not a folder in the bucket, such as shared/models/, or "/" for the whole bucket'),
        ("/a", '"/a" is not a folder in the bucket, such as shared/models/, or "/" for the whole bucket'),
    ],
)
def test_listed_folders_are_beside_the_stacks_own(tmp_path: Path, folder: str, message: str) -> None:
    (problem,) = problems(tmp_path, stack(folder), jobs="{}")
    assert problem.endswith(f"bucket.writableFolders[0]: {message}")


def test_more_folders_than_iam_takes_are_refused(tmp_path: Path) -> None:
    many = [f"gs://{OWN}/{number}" for number in range(MAX_OTHERS + 1)]
    assert len(others(load(tmp_path, stack(), jobs=declared(*many[1:])))) == MAX_OTHERS
    (problem,) = problems(tmp_path, stack(), jobs=declared(*many))
    assert "bucket.writableFolders: jobs write to 20 folders outside team/dev/, at most 19 can be granted" in problem


def test_jobs_of_programs_write_where_it_is_granted(tmp_path: Path) -> None:
    def messages(folder: str, *listed: str) -> list[str]:
        plan = load(tmp_path, stack(*listed), jobs="{}").plan
        job = custom_job()
        job["jobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": folder}
        return [message for _, message in plan.job_violations(Training(CUSTOM_JOB, "a", Job(CUSTOM_JOB, job)))]

    refusal = 'the training account may not write there; add "out/" to bucket.writableFolders'
    assert messages(f"gs://{OWN}/out") == [refusal]
    assert messages(f"gs://{OWN}/out/a", "out") == messages(f"gs://{OWN}/out", "/") == []
    assert messages(f"gs://{OWN}/team/dev/mine") == messages("gs://elsewhere/a") == []
