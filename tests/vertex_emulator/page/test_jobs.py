"""Jobs as the page shows them: the list of all with its pages, search and states, and what it is given of one."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from tests.vertex_emulator.events import plain, records
from tests.vertex_emulator.fakes import Emulator
from tests.vertex_emulator.jobs import IMAGE, LOCATION, custom_job_spec, pool, tuning_job_spec
from tests.vertex_emulator.scheduling.steps import reports
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind
from vertex_api.pipelines import CUSTOM_TASK
from vertex_emulator.database import Database
from vertex_emulator.database.jobs import Trials
from vertex_emulator.database.permissions import Need
from vertex_emulator.database.records import FAILED, RUNNING, Replica, Trial
from vertex_emulator.errors import ApiError
from vertex_emulator.page import jobs
from vertex_emulator.page.jobs import JobViews


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "emulator.db")
    yield database
    database.close()


def add(database: Database, *names: str, state: str | None = None) -> None:
    with database.write() as transaction:
        for name in names:
            spec = {**custom_job_spec(), "displayName": name}
            job = transaction.jobs.add(name, CUSTOM_JOB, LOCATION, spec)
            if state:
                transaction.jobs.update(job, state=state)


def ask(database: Database, query: str = "") -> dict[str, Any]:
    return jobs.search(database, jobs.Query.parse(QueryParams(query)))


def found_names(database: Database, query: str) -> list[str]:
    return [job["displayName"] for job in ask(database, query)["jobs"]]


def test_pages_give_every_job_once(database: Database) -> None:
    made = [f"job {i}" for i in range(2 * jobs.PAGE_SIZE + 1)]
    add(database, *made)
    seen: list[str] = []
    before = ""
    pages = 0
    while pages == 0 or before:
        found = ask(database, f"before={before}")
        seen += [job["displayName"] for job in found["jobs"]]
        before = found["next"] or ""
        pages += 1
    assert seen == made[::-1]
    assert pages == 3


def test_full_last_page_has_no_next(database: Database) -> None:
    add(database, *[f"job {i}" for i in range(jobs.PAGE_SIZE)])
    assert ask(database)["next"] is None


def test_search_continues_where_it_stopped(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_MAX_SCANNED", 10)
    add(database, "needle", *[f"hay {i}" for i in range(15)])
    first = ask(database, "text=needle")
    assert first["jobs"] == []
    rest = ask(database, f"text=needle&before={first['next']}")
    assert ([job["displayName"] for job in rest["jobs"]], rest["next"]) == (["needle"], None)


def test_jobs_are_found_by_query(database: Database) -> None:
    add(database, "Vision A", "speech")
    add(database, "vision b", state=RUNNING)
    add(database, "vision c", state=FAILED)
    assert found_names(database, "text=VISION") == ["vision c", "vision b", "Vision A"]
    assert found_names(database, "text=customJobs/speech") == ["speech"]
    assert found_names(database, "state=active") == ["vision b", "speech", "Vision A"]
    assert found_names(database, "text=vision&state=failed") == ["vision c"]


def test_jobs_requested_by_id_must_match_filters(database: Database) -> None:
    add(database, "a", "b")
    assert found_names(database, "id=a&id=gone&id=b") == ["a", "b"]
    assert found_names(database, "id=a&id=b&text=b") == ["b"]
    assert found_names(database, "id=a&state=succeeded") == []


def test_studies_count_trials_and_hide_jobs(database: Database) -> None:
    with database.write() as transaction:
        transaction.jobs.add("7", HYPERPARAMETER_TUNING_JOB, LOCATION, {"displayName": "s", "maxTrialCount": 9})
        for number, state in enumerate(("SUCCEEDED", "INFEASIBLE", "ACTIVE"), 1):
            transaction.jobs.add(f"7{number}", CUSTOM_JOB, LOCATION, custom_job_spec(), study="7", trial=number)
            transaction.trials.add(Trial("7", number, state, {}, f"7{number}"))  # type: ignore[arg-type]
    assert [(job["id"], job["trials"]) for job in ask(database)["jobs"]] == [("7", {"ended": 2, "most": 9})]
    assert ask(database, "id=71")["jobs"] == []


@pytest.mark.parametrize("query", ["state=done", "before=x", "before=-1", "before=²", f"before={10**30}"])
def test_invalid_query_is_rejected_by_name(query: str) -> None:
    with pytest.raises(ApiError, match=query.partition("=")[0]):
        jobs.Query.parse(QueryParams(query))


def create(emulator: Emulator, kind: Kind, spec: dict[str, Any]) -> str:
    return str(emulator.jobs.create(kind, LOCATION, spec)["name"]).rpartition("/")[2]


def view(emulator: Emulator, kind: Kind, job_id: str) -> dict[str, Any]:
    found = JobViews(emulator.database, emulator.machine, emulator.data).get(kind.collection, job_id)
    assert found is not None
    return found


def replicas(emulator: Emulator, job_id: str) -> list[tuple[Any, ...]]:
    shown = view(emulator, CUSTOM_JOB, job_id)["replicas"]
    return [(found["task"], found["state"], found["exitCode"], found["attempt"]) for found in shown]


def test_permissions_of_calls_are_shown_once(emulator: Emulator) -> None:
    job_id = create(emulator, CUSTOM_JOB, custom_job_spec())
    needs = [Need("storage.objects.get", "gs://a", lacking) for lacking in ("", "gs://a/b/")]
    with emulator.database.write() as transaction:
        transaction.permissions.add(job_id, [*needs, Need("logging.logEntries.create", "project")])
    shown = view(emulator, CUSTOM_JOB, job_id)["permissions"]
    assert shown == ["logging.logEntries.create on project", "storage.objects.get on gs://a"]


def test_replicas_are_shown_from_queue_to_exit(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec(pool(), pool(replicas=1)))
    assert replicas(emulator, job) == [("workerpool0-0", "PENDING", None, 1), ("workerpool1-0", "PENDING", None, 1)]
    emulator.run(until=lambda found: found.job(job).state == RUNNING)
    assert {state for _, state, _, _ in replicas(emulator, job)} == {"RUNNING"}
    emulator.machine.end(job, Replica(1, 0), 0)
    assert [state for _, state, _, _ in replicas(emulator, job)] == ["RUNNING", "SUCCEEDED"]
    emulator.machine.end(job, Replica(0, 0), 3)
    emulator.queue.add(job)
    emulator.run()
    assert replicas(emulator, job) == [("workerpool0-0", "FAILED", 3, 1), ("workerpool1-0", "SUCCEEDED", 0, 1)]
    assert view(emulator, CUSTOM_JOB, job)["replicas"][0]["image"] == IMAGE


def test_replicas_that_never_ran_are_shown(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec({**pool(), "containerSpec": {"imageUri": "absent:1"}}))
    emulator.run()
    assert replicas(emulator, job) == [("workerpool0-0", "NOT_STARTED", None, 1)]


def test_jobs_are_shown_without_docker(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec())
    emulator.machine.is_down = True
    assert replicas(emulator, job) == [("workerpool0-0", "PENDING", None, 1)]


def test_output_folders_are_shown_with_local_paths(emulator: Emulator) -> None:
    spec = custom_job_spec(baseOutputDirectory={"outputUriPrefix": "gs://bucket/run"})
    outputs = view(emulator, CUSTOM_JOB, create(emulator, CUSTOM_JOB, spec))["outputs"]
    assert [found["uri"] for found in outputs[:2]] == ["gs://bucket/run", "gs://bucket/run/model/"]
    assert outputs[1]["label"] == "AIP_MODEL_DIR"
    assert outputs[1]["path"] == str(emulator.data.buckets / "bucket/run/model")


def test_runs_of_a_name_show_what_they_measured(emulator: Emulator) -> None:
    made = []
    for accuracy in ("0.91", "0.95", "Infinity"):
        spec = custom_job_spec(baseOutputDirectory={"outputUriPrefix": f"gs://bucket/{accuracy}"})
        made.append(create(emulator, CUSTOM_JOB, spec))
        emulator.run()
        folder = emulator.data.buckets / "bucket" / accuracy
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "metrics.json").write_text(f'{{"accuracy": {accuracy}, "train": {{"loss": 2}}}}')
    create(emulator, CUSTOM_JOB, {**custom_job_spec(), "displayName": "another"})
    shown = view(emulator, CUSTOM_JOB, made[1])
    assert shown["metrics"] == {"accuracy": 0.95, "train.loss": 2}
    assert [(run["id"], run["metrics"]) for run in shown["runs"]] == [
        (made[2], {"train.loss": 2}),
        (made[1], {"accuracy": 0.95, "train.loss": 2}),
        (made[0], {"accuracy": 0.91, "train.loss": 2}),
    ]


def test_the_ten_newest_runs_of_a_name_are_shown(emulator: Emulator) -> None:
    made = [create(emulator, CUSTOM_JOB, custom_job_spec()) for _ in range(11)]
    assert [run["id"] for run in view(emulator, CUSTOM_JOB, made[0])["runs"]] == made[:0:-1]


def test_last_scalars_are_metrics_and_read_once(emulator: Emulator) -> None:
    spec = custom_job_spec(baseOutputDirectory={"outputUriPrefix": "gs://bucket/run"})
    job = create(emulator, CUSTOM_JOB, spec)
    emulator.run()
    folder = emulator.data.buckets / "bucket" / "run" / "logs" / "train"
    folder.mkdir(parents=True)
    (folder / "events.out.tfevents.1").write_bytes(records([plain("loss", 1, 2), plain("loss", 2, 0.5)]))
    (folder / "events.out.tfevents.2").symlink_to(folder / "events.out.tfevents.1")
    views = JobViews(emulator.database, emulator.machine, emulator.data)
    for _ in range(2):
        shown = views.get(CUSTOM_JOB.collection, job)
        assert shown and shown["metrics"] == {"train.loss": 0.5}
        (folder / "events.out.tfevents.1").write_bytes(b"")


def test_a_file_of_an_earlier_run_is_not_this_one_s(emulator: Emulator) -> None:
    folder = emulator.data.buckets / "bucket" / "run"
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text('{"accuracy": 0.9}')
    os.utime(folder / "metrics.json", (0, 0))
    job = create(emulator, CUSTOM_JOB, custom_job_spec(baseOutputDirectory={"outputUriPrefix": "gs://bucket/run"}))
    emulator.run()
    shown = view(emulator, CUSTOM_JOB, job)
    assert (shown["metrics"], shown["runs"]) == ({}, [])


def test_trial_jobs_lead_to_their_study(emulator: Emulator) -> None:
    study = create(emulator, HYPERPARAMETER_TUNING_JOB, tuning_job_spec())
    emulator.run_ready_steps()
    shown = view(emulator, HYPERPARAMETER_TUNING_JOB, study)
    assert "trials" not in shown["job"]
    trial = view(emulator, CUSTOM_JOB, shown["study"]["trials"][0]["job"])
    assert trial["parent"] == {"collection": "hyperparameterTuningJobs", "id": study, "trial": 1}
    assert trial["log"] == {"job": study, "trial": 1, "tasks": ["service", "workerpool0-0"]}
    (log,) = trial["commands"]
    assert log["command"].startswith(f"vertex-emulator logs {study} --trial 1 --follow")


def test_measurements_of_ended_trials_are_read_once(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator.machine.program = reports
    study = create(emulator, HYPERPARAMETER_TUNING_JOB, tuning_job_spec(trials=3, parallel=1))
    views = JobViews(emulator.database, emulator.machine, emulator.data)

    def curves() -> list[Any]:
        shown = views.get(HYPERPARAMETER_TUNING_JOB.collection, study)
        assert shown is not None
        return [trial["curve"]["values"]["acc"] for trial in shown["study"]["trials"]]

    emulator.run_ready_steps()
    assert curves() == [[]]  # it runs
    emulator.run()
    assert curves() == [[0.5], [0.5], [0.5]]
    monkeypatch.delattr(Trials, "measurements")
    assert curves() == [[0.5], [0.5], [0.5]]


def test_pipeline_links_to_job_of_its_task(emulator: Emulator) -> None:
    inputs = {"workerPoolSpecs": [pool()]}
    spec = {"displayName": "p", "trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": inputs}
    pipeline = create(emulator, TRAINING_PIPELINE, spec)
    assert "task" not in view(emulator, TRAINING_PIPELINE, pipeline)
    emulator.run()
    shown = view(emulator, TRAINING_PIPELINE, pipeline)
    assert shown["job"]["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert (shown["task"]["collection"], shown["task"]["model"]) == ("customJobs", None)
    assert view(emulator, CUSTOM_JOB, shown["task"]["id"])["job"]["state"] == "JOB_STATE_SUCCEEDED"


OWNER = {"pulumi_project": "digits", "pulumi_stack": "local", "pulumi_name": "train"}
DECLARED = {"name": "customJobs.train", "place": "training/train.yaml:3", "stack": "local", "labels": OWNER}


def tell(emulator: Emulator, *declarations: Any) -> None:
    stacks = {f"p/{i}": {"folder": "/a project", "jobs": [each]} for i, each in enumerate(declarations)}
    emulator.data.declarations.write_text(json.dumps(stacks))


def test_a_job_of_a_stack_shows_its_declaration(emulator: Emulator) -> None:
    tell(emulator, DECLARED, {**DECLARED, "labels": {**OWNER, "pulumi_name": "other"}})
    job = create(emulator, CUSTOM_JOB, {**custom_job_spec(), "labels": {**OWNER, "pulumi_token": "abc", "team": "a"}})
    shown = view(emulator, CUSTOM_JOB, job)
    assert shown["declared"] == {
        "name": "customJobs.train",
        "place": "training/train.yaml:3",
        "stack": "local",
        "folder": "/a project",
    }
    assert [each["command"] for each in shown["commands"]] == [
        "vertex-training run train --stack local",
        "pulumi preview --stack local",
        f"vertex-emulator logs {job} --follow --data {quote(str(emulator.data.root))}",
    ]


@pytest.mark.parametrize(
    "declarations",
    [
        [],
        [{**DECLARED, "labels": {**OWNER, "pulumi_stack": "other"}}],
        [{**DECLARED, "name": "hyperparameterTuningJobs.train"}],
        [DECLARED, {**DECLARED, "place": "elsewhere.yaml:1"}],
        [{"name": "customJobs.train"}],
        ["of another version"],
    ],
)
def test_what_nobody_has_told_for_sure_is_not_shown(emulator: Emulator, declarations: list[Any]) -> None:
    tell(emulator, *declarations)
    shown = view(emulator, CUSTOM_JOB, create(emulator, CUSTOM_JOB, {**custom_job_spec(), "labels": OWNER}))
    assert shown["declared"] is None
    assert [each["command"].split()[:2] for each in shown["commands"]] == [["vertex-emulator", "logs"]]


def test_ids_of_another_kind_are_none(emulator: Emulator) -> None:
    job = create(emulator, CUSTOM_JOB, custom_job_spec())
    views = JobViews(emulator.database, emulator.machine, emulator.data)
    for collection in ("hyperparameterTuningJobs", "models", ""):
        assert views.get(collection, job) is None
