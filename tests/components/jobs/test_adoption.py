"""Adoption by name, and what a refresh shows of a job that differs from its declaration."""

from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.jobs.identity import own_labels
from vertex_training.jobs.provider import (
    CustomJobProvider,
    HyperparameterTuningJobProvider,
    TrainingPipelineProvider,
    drifted_spec,
)
from vertex_training.schema.interpolation import expand

from tests.components.fakes import Clock, FakeClient
from tests.components.projects import INCLUDING, LOCAL, load, problems
from tests.vertex_api.jobs import ABSENT, custom_job, edited, pipeline, tuning_job
from vertex_api import errors
from vertex_api.names import CUSTOM_JOB
from vertex_api.validation.check import validate_job

PARENT = "projects/local/locations/us-central1"
NAME = f"{PARENT}/customJobs/77"
POOL = ("jobSpec", "workerPoolSpecs", 0)
ARGS = (*POOL, "containerSpec", "args")
ENV = (*POOL, "containerSpec", "env")
UNNAMED = edited(custom_job(), "displayName", to=ABSENT)
POOLS = "{workerPoolSpecs: [{machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: x}}]}"
PLACE = "jobs.yaml:1: customJobs.digits.lifecycle"

custom, tuning = CustomJobProvider(), HyperparameterTuningJobProvider()


def inputs(spec: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "owner": "team/dev/digits",
        "parent": f"//local/{PARENT}",
        "spec": spec or UNNAMED,
        "adopt": NAME,
        **changes,
    }


def there(api: FakeClient, **changes: Any) -> dict[str, Any]:
    """A job as someone submitted it by hand, with the service's defaults and nothing of a stack."""
    job = custom_job() | {"displayName": "by hand", "state": "JOB_STATE_RUNNING", **changes}
    job["jobSpec"] = {
        **job["jobSpec"],
        "serviceAccount": "default@p.iam.gserviceaccount.com",
        "baseOutputDirectory": {"outputUriPrefix": "gs://mine/out/"},
    }
    pool = job["jobSpec"]["workerPoolSpecs"][0] = dict(job["jobSpec"]["workerPoolSpecs"][0])
    pool |= {"replicaCount": "1", "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}}
    return api.add(NAME, **job)


def refusal(given: dict[str, Any]) -> list[str]:
    with pytest.raises(SubmitFailed) as failure:
        custom.create(given)
    return str(failure.value).splitlines()


@pytest.mark.parametrize(("owner", "shown"), [("team/prod/x", "team/prod"), ("team/dev/x", ""), ("", "")])
def test_adoption_names_the_stack_that_submitted(
    api: FakeClient, capsys: pytest.CaptureFixture[str], owner: str, shown: str
) -> None:
    there(api, labels=own_labels(owner, "t") if owner else {})
    custom.create(inputs())
    line = f"digits: stack {shown} has submitted {NAME}; set `onDelete: keep` there before it leaves that stack\n"
    assert capsys.readouterr().out == (line if shown else "")


@pytest.mark.parametrize("state", ["RUNNING", "SUCCEEDED", "FAILED", "PENDING"])
def test_adopting_by_name_takes_one_call(api: FakeClient, state: str) -> None:
    there(api, state=f"JOB_STATE_{state}")
    given = custom.check({}, inputs()).inputs
    created = custom.create(given)
    assert created.id == NAME
    assert {key: value for key, value in (created.outs or {}).items() if key != "run"} == given
    assert (created.outs or {})["run"]["state"] == f"JOB_STATE_{state}"
    assert (api.calls, api.sent) == (["get"], [])


def test_undeclared_fields_match_anything_and_never_drift(api: FakeClient) -> None:
    there(api, labels={"team": "vision"})
    checked = custom.check({}, inputs(edited(UNNAMED, *ARGS, to=ABSENT))).inputs
    assert "displayName" not in checked["spec"]
    custom.create(checked)
    read = custom.read(NAME, checked)
    assert (read.id, read.inputs) == (NAME, checked)


def test_every_difference_is_named_with_both_values(api: FakeClient) -> None:
    there(api)
    spec = edited(custom_job(), *ARGS, to=["--epochs=9"])
    spec = edited(spec, *POOL, "machineSpec", "machineType", to="n1-standard-8")
    spec["labels"] = {"team": "vision"}
    spec["jobSpec"]["scheduling"] = {"timeout": "60s", "disableRetries": False}
    pool = "jobSpec.workerPoolSpecs[0]"
    first, *found, last = refusal(inputs(spec))
    assert first == f"digits: {NAME} is not adopted, as it is not the job that is declared:"
    assert sorted(found) == [
        '  displayName: "digits" declared, and the job has "by hand"',
        '  jobSpec.scheduling.timeout: "60s" declared, and the job has nothing',
        f'  {pool}.containerSpec.args[0]: "--epochs=9" declared, and the job has "--epochs=3"',
        f'  {pool}.machineSpec.machineType: "n1-standard-8" declared, and the job has "n1-standard-4"',
        '  labels.team: "vision" declared, and the job has nothing',
    ]
    assert last == "declare what it has, or take lifecycle.adopt out to run what is declared"
    assert api.calls == ["get"]


def test_another_pool_or_argument_is_a_difference(api: FakeClient) -> None:
    there(api)
    pools = UNNAMED["jobSpec"]["workerPoolSpecs"]
    _, line, _ = refusal(inputs(edited(UNNAMED, "jobSpec", "workerPoolSpecs", to=pools * 2)))
    assert line == "  jobSpec.workerPoolSpecs: 2 declared, and the job has 1"
    _, line, _ = refusal(inputs(edited(UNNAMED, *ARGS, to=["--epochs=3", "-v"])))
    assert line.endswith('.args: ["--epochs=3", "-v"] declared, and the job has ["--epochs=3"]')


def test_a_difference_shows_no_secret_value(api: FakeClient) -> None:
    there(
        api, **edited(custom_job(), *ENV, to=[{"name": "TOKEN", "value": "old-secret"}, {"name": "A", "value": "s1"}])
    )
    env = [{"name": "TOKEN", "value": "${secrets.token}"}, {"name": "A", "value": "b"}]
    lines = refusal(inputs(edited(UNNAMED, *ENV, to=env), secrets={"token": "new-secret", "other": "s1"}))
    assert lines[1].endswith('.env[0].value: the job has another value than "${secrets.token}"')
    assert lines[2].endswith('.env[1].value: "b" declared, and the job has "${secrets.other}"')
    assert "secret" not in " ".join(lines).replace("${secrets.", "")


def test_a_matching_secret_is_no_difference(api: FakeClient) -> None:
    there(api, **edited(custom_job(), *ENV, to=[{"name": "TOKEN", "value": "hunter2"}]))
    spec = edited(UNNAMED, *ENV, to=[{"name": "TOKEN", "value": "${secrets.token}"}])
    assert custom.create(inputs(spec, secrets={"token": "hunter2"})).id == NAME


def test_a_missing_job_is_named(api: FakeClient) -> None:
    (line,) = refusal(inputs())
    assert line.startswith(f"digits: {NAME} is not adopted: ")
    api.failing["get"] = errors.PermissionDenied("no permission")
    assert refusal(inputs()) == [f"digits: {NAME} is not adopted: no permission"]


def test_an_edit_compares_anew_and_replaces_nothing(api: FakeClient) -> None:
    there(api)
    olds = custom.create(inputs(edited(UNNAMED, *ARGS, to=ABSENT))).outs or {}
    api.jobs[NAME]["state"] = "JOB_STATE_SUCCEEDED"
    updated = custom.update(NAME, olds, inputs()).outs or {}
    assert updated["run"]["state"] == "JOB_STATE_SUCCEEDED"
    with pytest.raises(SubmitFailed, match="is not the job that is declared"):
        custom.update(NAME, olds, inputs(edited(UNNAMED, *ARGS, to=["--epochs=4"])))
    assert set(api.calls) == {"get"}


@pytest.mark.parametrize(
    ("adopt", "replaces"),
    [
        (None, None),
        (NAME, None),
        (NAME.replace("local", "123456"), None),
        (NAME.replace("local", "other"), ["adopt"]),
        (NAME.replace("77", "78"), ["adopt"]),
        (NAME.replace("us-central1", "us-east1"), ["adopt"]),
        (NAME.replace("customJobs", "trainingPipelines"), ["adopt"]),
    ],
)
def test_only_another_job_to_adopt_replaces_a_job(adopt: str | None, replaces: list[str] | None) -> None:
    found = custom.diff(NAME, {}, inputs(adopt=adopt))
    assert (found.changes, found.replaces) == (None, replaces)


def test_two_numbers_are_two_projects() -> None:
    one, other = (NAME.replace("local", number) for number in ("123456", "654321"))
    assert custom.diff(one, {}, inputs(adopt=other)).replaces == ["adopt"]


def test_an_adopted_job_is_kept_by_default(api: FakeClient, clock: Clock) -> None:
    there(api, state="JOB_STATE_SUCCEEDED")
    custom.delete(NAME, inputs())
    custom.delete(NAME, inputs(lifecycle={"wait": True}))
    assert (api.calls, list(api.jobs)) == ([], [NAME])
    custom.delete(NAME, inputs(lifecycle={"onDelete": "delete"}))
    assert api.jobs == {}


def test_a_tuning_job_is_adopted_with_its_trials(api: FakeClient) -> None:
    name = f"{PARENT}/hyperparameterTuningJobs/78"
    measured = {"finalMeasurement": {"metrics": [{"metricId": "accuracy", "value": 0.5}]}}
    api.add(name, **tuning_job(), state="JOB_STATE_RUNNING", trials=[{"id": "1", "state": "SUCCEEDED", **measured}])
    run = (tuning.create(inputs(tuning_job(), adopt=name)).outs or {})["run"]
    assert run["trials"] == {"ended": 1, "of": 8}
    assert run["bestTrial"]["metrics"] == {"accuracy": 0.5}


def test_a_pipeline_is_adopted_with_its_task_inputs(api: FakeClient) -> None:
    name, piped = f"{PARENT}/trainingPipelines/79", TrainingPipelineProvider()
    api.add(name, **pipeline(), state="PIPELINE_STATE_RUNNING")
    given = inputs(edited(pipeline(), "displayName", to=ABSENT), adopt=name)
    checked = piped.check({}, given)
    assert checked.failures == []
    assert piped.create(checked.inputs).id == name
    api.jobs[name]["displayName"] = "by hand"
    assert piped.read(name, checked.inputs).inputs == checked.inputs
    with pytest.raises(SubmitFailed, match=r'args\[0\]: "--epochs=9" declared, and the job has "--epochs=3"'):
        piped.create(inputs(edited(pipeline(), "trainingTaskInputs", *ARGS[1:], to=["--epochs=9"]), adopt=name))


def test_references_are_filled_in_before_comparing(api: FakeClient) -> None:
    there(api)
    other = f"{PARENT}/customJobs/5"
    api.add(other, state="JOB_STATE_SUCCEEDED", jobSpec={"baseOutputDirectory": {"outputUriPrefix": "--epochs=3"}})
    api.jobs[NAME]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] = ["--epochs=3/model/"]
    given = inputs(edited(UNNAMED, *ARGS, to=["${jobs.other.modelDir}"]), jobs={"other": other})
    outs = custom.create(given).outs or {}
    assert outs["results"] == {"other.modelDir": "--epochs=3/model/"}
    assert custom.read(NAME, outs).inputs == given


def test_check_rejects_a_wrong_name_without_api_calls(api: FakeClient) -> None:
    failures = custom.check(
        {}, inputs(adopt=NAME.replace("customJobs", "hyperparameterTuningJobs"), rerun="1")
    ).failures
    assert [failure.property for failure in failures] == ["adopt", "rerun"]
    failures = custom.check({}, inputs(adopt=NAME.replace("us-central1", "europe-west4"))).failures
    assert [failure.property for failure in failures] == ["adopt"]
    assert api.calls == []


def declared(lifecycle: str) -> str:
    return f"customJobs: {{digits: {{jobSpec: {POOLS}, lifecycle: {lifecycle}}}}}\n"


@pytest.mark.parametrize("adopt", ["77", '"77"', NAME, NAME.replace("local", "123456")])
def test_adopt_takes_an_id_or_full_name(tmp_path: Path, adopt: str) -> None:
    (job,) = load(tmp_path, INCLUDING, jobs=declared(f"{{adopt: {adopt}}}")).jobs
    assert job.lifecycle == {"adopt": adopt.strip('"')}
    assert "displayName" not in job.job.fields


@pytest.mark.parametrize(
    ("lifecycle", "problem"),
    [
        ("{adopt: 77, rerun: 1}", "rerun: an adopted job is not run; take adopt out to run what is declared"),
        ("{adopt: job}", 'adopt: "job" is not a job\'s ID or resource name, projects/P/locations/R/customJobs/ID'),
        ("{adopt: 7.5}", 'adopt: 7.5 is not a string; write "7.5" in quotes'),
        (
            f"{{adopt: {NAME.replace('customJobs', 'hyperparameterTuningJobs')}}}",
            f'adopt: "{PARENT}/hyperparameterTuningJobs/77" is one of the hyperparameterTuningJobs: declare it there',
        ),
        (
            f"{{adopt: {NAME.replace('customJobs', 'models')}}}",
            f'adopt: "{PARENT}/models/77" is not the name of a job: projects/P/locations/R/customJobs/ID, '
            "or its ID alone",
        ),
        (
            f"{{adopt: {NAME.replace('us-central1', 'us-east1')}}}",
            'adopt: "projects/local/locations/us-east1/customJobs/77" is in us-east1, and the jobs of this stack are '
            "in us-central1",
        ),
        (
            f"{{adopt: {NAME.replace('local', 'acme')}}}",
            f'adopt: "{NAME.replace("local", "acme")}" is of another project than this stack\'s, local',
        ),
    ],
)
def test_a_preview_reports_problems_with_their_place(tmp_path: Path, lifecycle: str, problem: str) -> None:
    assert problems(tmp_path, INCLUDING, jobs=declared(lifecycle)) == [f"{PLACE}.{problem}"]


def test_a_job_is_adopted_once(tmp_path: Path) -> None:
    one = f"{{jobSpec: {POOLS}, lifecycle: {{adopt: 77}}}}"
    (problem,) = problems(tmp_path, INCLUDING, jobs=f"customJobs: {{digits: {one}, other: {one}}}\n")
    assert problem == 'jobs.yaml:1: customJobs.other.lifecycle.adopt: "77" is adopted by digits already'


def test_a_project_number_must_match_the_stack(tmp_path: Path) -> None:
    cloud = LOCAL.replace("local", "gcp") + (
        "  vertex-training:include: [jobs.yaml]\n  vertex-training:project: acme-dev\n"
        "  vertex-training:projectNumber: '123456789012'\n  vertex-training:region: us-central1\n"
    )
    assert load(tmp_path, cloud, jobs=declared(f"{{adopt: {NAME.replace('local', '123456789012')}}}"))
    (problem,) = problems(tmp_path, cloud, jobs=declared(f"{{adopt: {NAME.replace('local', '210987654321')}}}"))
    assert problem.endswith("is of another project than this stack's, acme-dev")


SECRETS = {"secrets": {"token": "hunter2", "key": "abc"}}
ENV_FIELD = ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "env")
DECLARED: dict[str, Any] = edited(
    custom_job(), *ENV_FIELD, to=[{"name": "A", "value": "1"}, {"name": "TOKEN", "value": "bearer ${secrets.token}"}]
) | {"labels": {"team": "vision"}}
DECLARED["jobSpec"] |= {
    "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/out"},
    "scheduling": {"timeout": "3600s", "restartJobOnWorkerRestart": False},
}


def held() -> dict[str, Any]:
    """The declared job as the service gives it back, in canonical form."""
    job = expand(DECLARED, SECRETS)
    job["labels"] = {**job["labels"], "pulumi_token": "t"}
    job["jobSpec"] = {
        **job["jobSpec"],
        "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/out/"},
        "scheduling": {"timeout": "3600s"},
        "serviceAccount": "default@project.iam.gserviceaccount.com",
    }
    pool = job["jobSpec"]["workerPoolSpecs"][0]
    pool["diskSpec"] = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}
    canonical, problems = validate_job(CUSTOM_JOB, job)
    assert problems == []
    return dict(canonical)


def seen(actual: dict[str, Any], declared: dict[str, Any] = DECLARED) -> Any:
    return drifted_spec(declared, actual, SECRETS)


def test_an_omitted_unspecified_enum_is_no_drift() -> None:
    machine = {"machineType": "n1-standard-4", "acceleratorType": "ACCELERATOR_TYPE_UNSPECIFIED"}
    assert seen({"machineType": "n1-standard-4"}, machine) == machine
    assert seen({"acceleratorType": "NVIDIA_L4"}, machine) == {"acceleratorType": "NVIDIA_L4"}


def test_service_defaults_and_labels_are_no_drift() -> None:
    assert held() != DECLARED
    assert seen(held()) == DECLARED


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("displayName",), "other"),
        (("labels", "team"), "speech"),
        (("jobSpec", "scheduling", "timeout"), "60s"),
        (("jobSpec", "scheduling", "restartJobOnWorkerRestart"), True),
        (("jobSpec", "baseOutputDirectory", "outputUriPrefix"), "gs://bucket/elsewhere/"),
        (("jobSpec", "workerPoolSpecs", 0, "machineSpec", "machineType"), "n1-highmem-2"),
        (("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args"), ["--epochs=4"]),
        (("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args"), ["--epochs=3", "--more"]),
        ((*ENV_FIELD, 0, "value"), "2"),
    ],
)
def test_only_the_real_change_is_shown(path: tuple[Any, ...], to: Any) -> None:
    assert seen(edited(held(), *path, to=to)) == edited(DECLARED, *path, to=to)


@pytest.mark.parametrize("path", [("labels", "team"), ("jobSpec", "workerPoolSpecs", 0, "containerSpec", "args")])
def test_a_removed_field_is_shown_as_removed(path: tuple[Any, ...]) -> None:
    assert seen(edited(held(), *path, to=ABSENT)) == edited(DECLARED, *path, to=ABSENT)


@pytest.mark.parametrize("zero", [0, 0.0, False, "", [], {}])
def test_an_omitted_declared_zero_is_no_drift(zero: Any) -> None:
    assert drifted_spec({"a": zero}, {}, {}) == {"a": zero}
    assert drifted_spec({"a": zero}, {"a": 1}, {}) == {"a": 1}


def test_only_a_folder_s_slash_is_overlooked() -> None:
    assert drifted_spec("gs://a/b/", "gs://a/b", {}) == "gs://a/b"
    assert drifted_spec("gs://a/b", "gs://a/b//", {}) == "gs://a/b//"


def test_an_unchanged_secret_keeps_its_reference() -> None:
    assert "hunter2" in str(held())
    assert "hunter2" not in str(seen(held()))
    assert "${secrets.token}" in str(seen(held()))


def test_a_different_secret_is_a_change() -> None:
    found = seen(edited(held(), *ENV_FIELD, 1, "value", to="bearer stolen"))
    assert found == edited(DECLARED, *ENV_FIELD, 1, "value", to="bearer stolen")


@pytest.mark.parametrize(
    "env",
    [
        [{"name": "TOKEN", "value": "bearer hunter2"}],
        [{"name": "A", "value": "1"}, {"name": "TOKEN", "value": "bearer hunter2"}, {"name": "B", "value": "2"}],
        [{"name": "TOKEN", "value": "bearer hunter2"}, {"name": "A", "value": "1"}],
    ],
    ids=["one less", "one more", "another order"],
)
def test_a_change_beside_a_secret_reveals_nothing(env: list[dict[str, str]]) -> None:
    found = seen(edited(held(), *ENV_FIELD, to=env))
    assert found != DECLARED
    assert "hunter2" not in str(found)


def test_sending_fills_in_secrets_only() -> None:
    sent = expand(DECLARED, SECRETS)
    assert sent == edited(DECLARED, *ENV_FIELD, 1, "value", to="bearer hunter2")
    assert "${secrets.token}" in str(DECLARED)


def test_sending_unescapes_text() -> None:
    args = ["$${secrets.token}", "$(MODEL_DIR)", "${secrets.key}$${x}"]
    assert expand({"args": args}, SECRETS) == {"args": ["${secrets.token}", "$(MODEL_DIR)", "abc${x}"]}


@pytest.mark.parametrize("value", ["a$${b}", "${secrets.key}", "$$", "x\n"])
def test_a_secret_is_sent_verbatim(value: str) -> None:
    assert expand(["${secrets.token}", "a ${secrets.token}"], {"secrets": {"token": value}}) == [
        value,
        f"a {value}",
    ]
