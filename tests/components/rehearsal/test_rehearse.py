"""`vertex-training rehearse`: jobs of a stack or of a preview, small, in a target that is gone afterwards."""

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from vertex_training.cli import main
from vertex_training.errors import BuildFailed
from vertex_training.images.builders import failure
from vertex_training.images.image import TrainingImageProvider
from vertex_training.plan.training import Training, parse_spec
from vertex_training.rehearsal import report
from vertex_training.rehearsal.rehearse import Options, rehearse, shrink
from vertex_training.rehearsal.run import run
from vertex_training.rehearsal.runner import Ended, Source, in_order
from vertex_training.rehearsal.target import throw_away

from tests.blocks import taken
from tests.vertex_emulator.running import IMAGE, until
from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, TRAINING_PIPELINE, Kind

from .declared import WRITE, Write, commit, everything, job, left, lifted, sized

REPORT = f"{WRITE}; open(p + '/metrics.json', 'w').write('{{\"accuracy\": %s, \"by\": \"me\"}}' % sys.argv[1])"


def preview(file: Path, **ops: str) -> str:
    """Write a preview of stack dev, with an operation for each job."""
    from vertex_training.review.changes import KINDS_BY_TYPE

    (type_,) = (each for each, kind in KINDS_BY_TYPE.items() if kind == CUSTOM_JOB)
    state = {"custom": True, "inputs": {"spec": {}}}
    steps = [
        {"op": op, "urn": f"urn:pulumi:dev::one-off::{type_}::{name}", "oldState": state, "newState": state}
        for name, op in ops.items()
    ]
    file.write_text(json.dumps({"steps": steps, "config": {}}))
    return str(file)


def saved(file: Path) -> dict[str, Any]:
    """The jobs of a saved rehearsal, by name."""
    return {each["name"]: each for each in json.loads(file.read_text())["jobs"]}


def test_jobs_run_small_and_in_order(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    use = "import sys; sys.exit(open(sys.argv[1].replace('gs://', '/gcs/') + '/metrics.json').read() == '')"
    project(
        "  a-user: "
        + lifted(job(use, "${jobs.trainer.modelDir}"))
        + "  trainer: "
        + sized(job(REPORT, "${vars.code}", env="x"), vars={"code": 0.5})
        + "  broken: "
        + job("import sys; print('why it broke'); sys.exit(4)")
        + "  waiting: "
        + json.dumps({**json.loads(job("pass")), "lifecycle": {"after": ["broken"]}})
        + "\n"
        + "  secret: "
        + job("pass", env="${secrets.token}")
    )
    file = tmp_path / "saved.json"
    before = sorted(path.name for path in Path.cwd().rglob("*"))
    assert rehearse(Options(stack="dev", save=file)) == 1
    shown, said = capfd.readouterr()
    jobs = saved(file)
    assert {name: each["outcome"] for name, each in jobs.items()} == {
        "broken": "failed",
        "secret": "skipped",
        "trainer": "succeeded",
        "a-user": "succeeded",
        "waiting": "skipped",
    }
    assert [*jobs].index("trainer") < [*jobs].index("a-user")
    assert jobs["trainer"]["metrics"] == {"accuracy": 0.5}
    assert jobs["trainer"]["files"] == {"count": 1, "bytes": 29, "names": ["model/metrics.json"]}
    assert "seconds" in jobs["trainer"] and jobs["trainer"]["env"] == ["T"]
    assert "status of 4" in jobs["broken"]["reason"] and "why it broke" in jobs["broken"]["reason"]
    assert len(jobs["broken"]["reason"].splitlines()) <= 10 and "vertex-emulator logs" not in jobs["broken"]["reason"]
    assert jobs["waiting"]["reason"] == "comes after broken, which failed"
    assert "--secret token" in jobs["secret"]["reason"]
    (page,) = taken("docs/rehearsal.md", "output", "digits: ")
    told = page.replace("digits", "broken").replace("status of 2", "status of 4").splitlines(keepends=True)
    assert "accuracy 0.5" in shown and "".join([*told[:-1], "      why it broke\n"]) in shown
    assert "trainer: accuracy 0.5" in said and "trainer: succeeded" in said
    assert sorted(path.name for path in Path.cwd().rglob("*")) == before
    assert left(tmp_path) == []


def test_an_image_that_cannot_be_built_is_tried_once(
    project: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tried = []

    def build(_context: object, uri: str, *_: object) -> None:
        tried.append(uri)
        raise failure(uri, ["E: no space"], "free some", "image/Dockerfile:4 (RUN a)")

    monkeypatch.setattr("vertex_training.images.builders.build", build)
    project("".join(f"  {name}: {job('pass')}" for name in ("one", "two")).replace(IMAGE, "${images.broken}"))
    (Path.cwd() / "image").mkdir()
    (Path.cwd() / "image" / "Dockerfile").write_text(f"FROM {IMAGE}\n# {tmp_path}\n")
    with Path("jobs.yaml").open("a") as file:
        file.write("images: {broken: {context: image}}\n")
    assert rehearse(Options(save=tmp_path / "saved.json")) == 1
    assert len(tried) == 1
    told = [(each["outcome"], each["reason"]) for each in saved(tmp_path / "saved.json").values()]
    line = f"{tried[0]} cannot be built: image/Dockerfile:4 (RUN a); free some; the last lines of its build:"
    assert told == [("failed", f"{line}\n  E: no space")] * 2
    said = capfd.readouterr().err
    assert "one: failed" in said and "two: failed" in said
    # The same by `vertex-training run`, and for an image of `pulumi up`.
    monkeypatch.setattr("vertex_training.rehearsal.run.throw_away", lambda: nullcontext(tmp_path))
    monkeypatch.setattr("vertex_training.rehearsal.runner.target.resolve", lambda _: None)
    assert run("one", None, [], [], None) == 2
    assert capfd.readouterr().err == f"vertex-training: {line}\n  E: no space\n"
    with pytest.raises(BuildFailed) as failed:
        TrainingImageProvider().create({"uri": tried[0], "context": "image", "dockerfile": "Dockerfile"})
    assert str(failed.value) == f"{line}\n  E: no space"


def test_a_preview_says_which_jobs_run(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    project("".join(f"  {name}: {job('pass')}" for name in ("made", "again", "kept", "gone", "moved")))
    file = preview(tmp_path / "p.json", made="create", again="replace", kept="same", moved="update", loose="create")
    assert main(["rehearse", file, "--format", "json", "--only", "made", "--only", "loose"]) == 0
    jobs = json.loads(capfd.readouterr().out)["jobs"]
    assert [(each["name"], each["outcome"]) for each in jobs] == [("made", "succeeded"), ("loose", "skipped")]
    assert "a Python program" in jobs[1]["reason"]
    assert rehearse(Options(preview=file, only=["kept"])) == 2
    assert "--only: kept is no job that the preview creates or replaces" in capfd.readouterr().err


def test_a_saved_rehearsal_is_compared(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    project("  train: " + job(REPORT, "${vars.code}", env="${secrets.token}"))
    (tmp_path / "token").write_text("gs://canary/x")  # which is no input to be named
    metrics = {"accuracy": 0.25, "loss": 2}
    base = {"name": "train", "outcome": "succeeded", "seconds": 1, "metrics": metrics, "env": ["OLD"]}
    (tmp_path / "base.json").write_text(json.dumps({"version": 1, "jobs": [base]}))
    files: Any = {"secret": [f"token=@{tmp_path / 'token'}"], "against": tmp_path / "base.json"}
    assert rehearse(Options(stack="dev", set=["vars.code=0.75"], save=tmp_path / "new.json", **files)) == 0
    new = saved(tmp_path / "new.json")["train"]
    assert (new["missingMetrics"], new["newEnv"]) == (["loss"], ["T"])
    assert new["base"] == {"outcome": "succeeded", "seconds": 1, "metrics": metrics}
    shown, said = capfd.readouterr()
    assert "accuracy 0.25 → 0.75, loss is missing" in shown and "new variables: T" in shown
    assert "canary" not in shown + said + (tmp_path / "new.json").read_text()


def test_what_a_job_used_is_told(project: Write, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    work = "data = bytearray(b'x') * (200 << 20); end = time.process_time() + 1.5"
    touch = "open('/gcs/acme-data/x', 'w').close()"
    project("  train: " + job(f"import time; {WRITE}; {work}; {touch}\nwhile time.process_time() < end: pass"))
    assert rehearse(Options(save=tmp_path / "saved.json")) == 0
    told = saved(tmp_path / "saved.json")["train"]
    (replica,) = told["replicas"]
    assert replica["peakMemoryBytes"] >= 200 << 20 and 0 < replica["cpuSeconds"] < 5
    assert (replica["name"], replica["memoryBytes"], replica["vcpus"]) == ("workerpool0-0", 15 << 30, 4)
    assert told["buckets"] == ["acme-data"]
    shown = capfd.readouterr().out
    assert "of 16.1 GB" in shown and "buckets: acme-data" in shown


def test_the_page_shows_the_table() -> None:
    (shown,) = taken("docs/rehearsal.md", "output", "job ")
    memory = {"memoryBytes": 15 << 30}
    digits: Any = {"name": "digits", "outcome": "succeeded", "seconds": 10.0}
    digits["replicas"] = [{"name": "workerpool0-0", "peakMemoryBytes": 91_500_000, **memory}]
    digits["files"] = {"count": 2, "bytes": 161_900}
    digits["metrics"] = {"accuracy": 0.84444, "loss": 1.71789, "epochs": 1}
    search: Any = {"name": "digits-search", "outcome": "succeeded", "seconds": 13.0}
    search["replicas"] = [{"name": "workerpool0-0", "peakMemoryBytes": 87_200_000, **memory}]
    search["files"] = {"count": 4, "bytes": 573_400}
    search["metrics"] = {"accuracy": 0.91111}
    assert report.RENDERERS["table"]({"version": 1, "jobs": [digits, search]}) == shown


def test_the_page_shows_what_drills_find() -> None:
    (shown,) = taken("docs/rehearsal.md", "output", "forgets: ")
    ended = {"reason": "it ended the job, which was submitted again"}
    anew: Any = {"resumed": False, "fromStep": 1, "lostSteps": 15, "sameEnd": True}
    on: Any = {"resumed": True, "fromStep": 13, "lostSteps": 3, "sameEnd": True}
    done: Any = {
        "fault": "preempt",
        "resumed": True,
        "lostSteps": 0,
        "sameEnd": True,
        "reason": "nothing was left to do",
    }
    forgets = [{"fault": "preempt", **anew, "lostSteps": 24}, {"fault": "restart", **anew}]
    keeps = [done, {"fault": "restart", **on}]
    jobs: Any = [
        {"name": name, "outcome": "succeeded", "drills": [*drills, {"fault": "out-of-memory", **state, **ended}]}
        for name, drills, state in (("forgets", forgets, anew), ("keeps", keeps, on))
    ]
    assert report.RENDERERS["table"]({"version": 1, "jobs": jobs}).partition("\n\n")[2] == shown


def test_a_search_tells_its_largest_trial() -> None:
    read = {"task": "workerpool0-0", "machineType": "", "peakMemoryBytes": 7, "cpuSeconds": 1.5}
    trials = [read, {**read, "peakMemoryBytes": 9, "cpuSeconds": 1}, {**read, "task": "workerpool1-0"}]
    found = [(each["name"], each["peakMemoryBytes"], each["cpuSeconds"]) for each in report.replicas(trials)]
    assert found == [("workerpool0-0", 9, 1.5), ("workerpool1-0", 7, 1.5)]


POOL = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "containerSpec": {"imageUri": IMAGE, "args": ["--epochs=9"]},
}
STUDY = {
    "maxTrialCount": 8,
    "parallelTrialCount": 4,
    "studySpec": {
        "metrics": [{"metricId": "loss", "goal": "MINIMIZE"}],
        "parameters": [{"parameterId": "lr", "doubleValueSpec": {"minValue": 0, "maxValue": 1}}],
    },
}
SPEC = {"workerPoolSpecs": [POOL], "scheduling": {"timeout": "600s"}}


@pytest.mark.parametrize(
    ("reason", "missing"),
    [
        ("The trial ended without reporting the metric loss. It reported los.", ["loss"]),
        ("The replica workerpool0-0 exited with a non-zero status of 1.", []),
    ],
)
def test_a_crash_is_no_missing_metric(reason: str, missing: list[str], tmp_path: Path) -> None:
    body = {"displayName": "a", **STUDY, "trialJobSpec": SPEC}
    parsed, _ = parse_spec(HYPERPARAMETER_TUNING_JOB, body)
    assert parsed
    trial = {"id": "1", "state": "INFEASIBLE", "infeasibleReason": reason}
    ended = Ended(
        {**body, "state": "JOB_STATE_FAILED", "trials": [trial]}, parsed, tmp_path, f"a failed: {reason}\nlog\nagain"
    )
    assert report.ended("a", "HyperparameterTuningJob", ended, tmp_path)["missingMetrics"] == missing


TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/hyperparameter_tuning_task_1.0.0.yaml"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (CUSTOM_JOB, {"displayName": "a", "jobSpec": SPEC}),
        (HYPERPARAMETER_TUNING_JOB, {"displayName": "a", **STUDY, "trialJobSpec": SPEC}),
        (
            TRAINING_PIPELINE,
            {
                "displayName": "a",
                "trainingTaskDefinition": TASK,
                "trainingTaskInputs": {**STUDY, "trialJobSpec": SPEC},
            },
        ),
    ],
)
def test_every_kind_of_job_becomes_small(kind: Kind, body: dict[str, Any]) -> None:
    parsed, problems = parse_spec(kind, body)
    assert parsed and not problems
    training = Training(kind, "a", parsed)
    small = shrink(training, {"timeout": "60s", "maxTrialCount": 2, "args": ["--epochs=1"]}).job
    assert small.timeout == "60s"
    assert small.pools[0]["containerSpec"]["args"] == ["--epochs=9", "--epochs=1"]
    assert small.trials == (1 if kind == CUSTOM_JOB else 2)
    assert shrink(training, {"timeout": "900s", "maxTrialCount": 20}).job == parsed
    assert training.job.timeout == "600s"  # what is declared stays


def test_what_a_job_needs_runs_before_it(project: Write) -> None:
    first = json.dumps({**json.loads(job("pass")), "lifecycle": {"after": ["zero"]}}) + "\n"
    project(f"  last: {job('pass', '${jobs.first.name}')}  first: {first}  zero: {job('pass')}  other: {job('pass')}")
    known = {each.name: each for each in Source.read(Path.cwd(), None, []).settings({}).plan.trainings}
    assert [each.name for each in in_order(known, ["last"])] == ["first", "last"]
    assert [each.name for each in in_order(known, ["last", "zero"])] == ["zero", "first", "last"]


def test_a_size_is_no_part_of_the_job(project: Write) -> None:
    plain = job("pass", "${vars.code}")
    found = []
    for declared in (plain, sized(plain, vars={"code": 1}, timeout="9s", args=["b"])):
        project("  train: " + declared)
        (training,) = Source.read(Path.cwd(), None, []).settings({}).plan.trainings
        found.append((training.job, training.lifecycle))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("size", "options", "message"),
    [
        ({"vars": {"cod": 1}}, Options(), "customJobs.train.rehearse.vars.cod: is no var; did you mean code?"),
        ({"epochs": 1}, Options(), "customJobs.train.rehearse.epochs: "),
        ({"timeout": "fast"}, Options(), "customJobs.train.rehearse.timeout: "),
        ({"args": ["${secrets.a}"]}, Options(), "customJobs.train.rehearse.args[0]: "),
        ({}, Options(set=["maxTrials=1"]), "--set: maxTrials: "),
        ({"vars": {"code": 1}}, Options(set=["code=1"]), "--set: code: unknown field; did you mean vars.code?"),
        ({}, Options(set=["timeout"]), "--set: timeout must be vars.NAME=VALUE, timeout=DURATION"),
        ({}, Options(only=["trian"]), "--only: trian is no job of this stack; did you mean train?"),
        ({}, Options(against=Path("jobs.yaml")), "jobs.yaml: is not the file of a rehearsal"),
        ({}, Options(against=Path("none.json")), "none.json: No such file"),
        ({}, Options(preview="jobs.yaml"), "jobs.yaml: is not the output of `pulumi preview --json`"),
    ],
)
def test_a_slip_rehearses_nothing(
    size: dict[str, Any],
    options: Options,
    message: str,
    project: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project("  train: " + sized(job("pass"), **size))
    assert rehearse(options) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("vertex-training: ") and message in shown
    assert left(tmp_path) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_rehearsal_that_ends_early_leaves_nothing(sign: signal.Signals, project: Write, tmp_path: Path) -> None:
    # The base is there when the jobs run, and runs when they have ended: then two emulators are there.
    project("  train: " + job("import time; time.sleep(600)"))
    commit()
    project("  train: " + job("pass"))
    before = everything(Path.cwd())
    log = tmp_path / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "vertex_training.cli", "rehearse", "--base", "HEAD"],
            env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    until(lambda: "HEAD: train: CustomJob" in log.read_text(), "the job of the base")
    until(lambda: any("vertex-training-run-" not in each for each in left(tmp_path)), "its container")
    os.killpg(process.pid, sign)
    assert process.wait() == (-sign if sign == signal.SIGKILL else 130)
    if sign == signal.SIGKILL:
        assert left(tmp_path) != []
        with throw_away():
            pass
    assert left(tmp_path) == []
    assert everything(Path.cwd()) == before
    assert "Traceback" not in log.read_text()
