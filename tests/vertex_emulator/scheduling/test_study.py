"""Studies that stop themselves or their trials, on a machine in memory whose trainers report as they start."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.fakes import Clock, Emulator, Machine, use_clock
from tests.vertex_emulator.jobs import LOCATION, pool, tuning_job, tuning_job_spec
from tests.vertex_emulator.kills import Outcome, assert_that_no_kill_changes_the_end
from tests.vertex_emulator.scheduling.steps import log_texts, mounted, reports, submit_study
from vertex_api.names import HYPERPARAMETER_TUNING_JOB
from vertex_emulator.database.records import FAILED, SUCCEEDED, Job, Trial
from vertex_emulator.replicas.spec import ReplicaSpec
from vertex_emulator.scheduling import trials
from vertex_emulator.scheduling.study import Reconciler, decide_ending

MEDIAN: Mapping[str, Any] = {"medianAutomatedStoppingSpec": {}}


class ReportingMachine(Machine):
    """The trainer of trial n reports the n-th of `values` as its container starts."""

    values: tuple[float | None, ...] = ()

    def start(self, spec: ReplicaSpec) -> None:
        value = self.values[int(spec.environment["CLOUD_ML_TRIAL_ID"]) - 1]
        if value is not None:
            folder = mounted(spec, "/tmp/hypertune")
            assert folder is not None
            line = {"timestamp": 1_700_000_100.0, "acc": str(value), "global_step": "1"}
            (folder / "output.metrics").write_text(json.dumps(line) + "\n")
        super().start(spec)


Start = Callable[[str], Emulator]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Emulator]:
    def started(*values: float | None, folder: str = "data") -> Emulator:
        clock = Clock()
        use_clock(clock, monkeypatch)
        machine = ReportingMachine(clock)
        machine.values = values
        return Emulator(tmp_path / folder, machine)

    return started


def submit(emulator: Emulator, count: int, parallel: int = 1, **study_spec: Any) -> str:
    spec = tuning_job_spec(count, parallel)
    spec["studySpec"] |= study_spec
    return str(emulator.jobs.create(HYPERPARAMETER_TUNING_JOB, LOCATION, spec)["name"]).rpartition("/")[2]


def shown(emulator: Emulator, study: str) -> Any:
    return emulator.jobs.get(HYPERPARAMETER_TUNING_JOB, LOCATION, study)


def states(emulator: Emulator, study: str) -> list[str]:
    return [trial["state"] for trial in shown(emulator, study).get("trials", [])]


def lines(emulator: Emulator, study: str, part: str) -> list[tuple[str, str]]:
    with emulator.database.read() as transaction:
        return [(line.severity, line.text) for line in transaction.jobs.messages(study) if part in line.text]


def cancel(emulator: Emulator, study: str) -> None:
    emulator.jobs.cancel(HYPERPARAMETER_TUNING_JOB, LOCATION, study)


def test_trial_stopped_early_succeeds_with_its_measurement(start: Any) -> None:
    emulator = start(0.9, 0.1, 0.95)
    study = submit(emulator, 3, **MEDIAN)
    emulator.run()
    assert shown(emulator, study)["state"] == "JOB_STATE_SUCCEEDED"
    assert states(emulator, study) == ["SUCCEEDED"] * 3
    second = shown(emulator, study)["trials"][1]
    assert second["finalMeasurement"]["metrics"] == [{"metricId": "acc", "value": 0.1}]
    assert emulator.machine.signals == ["SIGTERM"]
    [(severity, text)] = lines(emulator, study, "stopped early")
    assert severity == "INFO"
    assert text.startswith("Trial 2 is stopped early: acc: its best value is worse than the median")


def test_running_trial_is_compared_again_when_another_succeeds(start: Any) -> None:
    emulator = start(0.9, 0.1)
    study = submit(emulator, 2, 2, **MEDIAN)
    emulator.run(lambda emulator: states(emulator, study) == ["ACTIVE", "ACTIVE"])
    emulator.run()
    assert [text[:24] for _, text in lines(emulator, study, "stopped early")] == ["Trial 2 is stopped early"]


def test_no_trial_is_kept_after_end(start: Any) -> None:
    emulator = start(0.9, 0.1)
    study = submit(emulator, 2, **MEDIAN)
    emulator.run(lambda emulator: "SUCCEEDED" in states(emulator, study))
    assert [*emulator.scheduler._studies._known] == [study]
    emulator.run()
    assert [*emulator.scheduler._studies._known] == []


def test_trial_that_is_being_stopped_is_stopping(start: Any) -> None:
    emulator = start(0.9, 0.1)
    emulator.machine.ignores_sigterm = True
    study = submit(emulator, 2, **MEDIAN)
    emulator.run(lambda emulator: len(states(emulator, study)) == 2)
    emulator.machine.finish_one = lambda: None
    emulator.run(lambda emulator: "STOPPING" in states(emulator, study))
    assert states(emulator, study) == ["SUCCEEDED", "STOPPING"]
    emulator.run()
    assert states(emulator, study) == ["SUCCEEDED", "SUCCEEDED"]


def test_trial_stopped_early_is_no_failure(start: Any) -> None:
    emulator = start(0.9, 0.1, 0.1, 0.1)
    study = submit(emulator, 4, **MEDIAN)
    emulator.run()
    assert shown(emulator, study)["state"] == "JOB_STATE_SUCCEEDED"


def test_stopped_study_lets_its_running_trials_finish(start: Any) -> None:
    emulator = start(*[0.5] * 9)
    study = submit(emulator, 9, 2, studyStoppingConfig={"maxNumTrials": 3})
    emulator.run()
    assert shown(emulator, study)["state"] == "JOB_STATE_SUCCEEDED"
    assert states(emulator, study) == ["SUCCEEDED"] * 3
    assert emulator.machine.signals == []
    assert lines(emulator, study, "is stopped") == [("INFO", "The study is stopped: maxNumTrials: there are 3 trials.")]


def test_should_stop_asap_stops_running_trials(start: Any) -> None:
    emulator = start(0.5, 0.5, None)
    config = {"maximumRuntimeConstraint": {"maxDuration": "60s"}, "shouldStopAsap": True}
    study = submit(emulator, 9, 3, studyStoppingConfig=config)
    emulator.machine.finish_one = lambda: None
    emulator.run()
    assert shown(emulator, study)["state"] == "JOB_STATE_SUCCEEDED"
    # The third had nothing to show for its time; it fails nothing.
    assert states(emulator, study) == ["SUCCEEDED", "SUCCEEDED", "INFEASIBLE"]
    assert emulator.machine.signals == ["SIGTERM"] * 3
    assert len(lines(emulator, study, "maximumRuntimeConstraint: its time has passed")) == 1


def test_should_stop_asap_spares_last_allowed_trial(start: Any) -> None:
    emulator = start(0.5, 0.5)
    study = submit(emulator, 9, 1, studyStoppingConfig={"maxNumTrials": 2, "shouldStopAsap": True})
    emulator.run()
    assert states(emulator, study) == ["SUCCEEDED"] * 2
    assert emulator.machine.signals == []


def test_study_awaiting_trials_can_be_cancelled(start: Any) -> None:
    emulator = start(0.5, 0.5)
    study = submit(emulator, 9, 2, studyStoppingConfig={"maximumRuntimeConstraint": {"maxDuration": "1s"}})
    emulator.run_ready_steps()
    emulator.machine.clock.advance(2)
    emulator.run(lambda emulator: bool(lines(emulator, study, "is stopped")))
    assert emulator.job(study).is_stopped_study
    cancel(emulator, study)
    emulator.run()
    assert shown(emulator, study)["state"] == "JOB_STATE_CANCELLED"


def test_cancelled_study_waits_for_its_trials_states(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = start(0.5)
    study = submit(emulator, 1)
    emulator.run_ready_steps()
    update = trials.update

    def build_and_end_job(study: Job, trial: Trial, job: Job, metric_text: str) -> Trial:
        """The trial's job ends once the trial has been updated from it, and before the study looks at its jobs."""
        updated = update(study, trial, job, metric_text)
        if study.ending is not None and not job.is_terminal:
            with emulator.database.write() as transaction:
                transaction.jobs.end(job, study.ending)
        return updated

    monkeypatch.setattr(trials, "update", build_and_end_job)
    cancel(emulator, study)
    emulator.run()
    assert shown(emulator, study)["state"] == "JOB_STATE_CANCELLED"
    assert states(emulator, study) == ["INFEASIBLE"]


def test_better_trial_revives_no_stopped_study(start: Any) -> None:
    # The second trial is no better than the first, which stops the study while the third, a better one, still runs.
    emulator = start(0.9, 0.5, 0.95)
    study = submit(emulator, 9, 2, studyStoppingConfig={"maxNumTrialsNoProgress": 1})
    emulator.run()
    assert states(emulator, study) == ["SUCCEEDED"] * 3
    assert shown(emulator, study)["state"] == "JOB_STATE_SUCCEEDED"


def test_packages_and_containers_get_parameters_as_arguments(start: Any) -> None:
    package = {"executorImageUri": "x", "packageUris": ["gs://b/p"], "pythonModule": "m", "args": ["--own"]}
    pools = [{"pythonPackageSpec": package}, {}, pool(args=["--own"])]
    study = tuning_job(tuning_job_spec(trialJobSpec={"workerPoolSpecs": pools}))
    first, second, third = trials.job_spec(study, 1, {"x": 0.5, "layers": 3, "kind": "a"})["workerPoolSpecs"]
    flags = ["--own", "--x=0.5", "--layers=3", "--kind=a"]
    assert first["pythonPackageSpec"] == package | {"args": flags}
    assert second == {}
    assert third["containerSpec"]["args"] == flags


SCENARIOS: dict[str, tuple[tuple[float | None, ...], int, int, dict[str, Any]]] = {
    "early stopping": ((0.9, 0.1), 2, 1, dict(MEDIAN)),
    "a study that stops": ((0.5, 0.5), 3, 2, {"studyStoppingConfig": {"maxNumTrials": 2}}),
    "a study that stops at once": (
        (0.5, 0.5),
        3,
        2,
        {"studyStoppingConfig": {"maxNumTrials": 2, "shouldStopAsap": True}},
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kill_at_any_step_changes_no_outcome(scenario: str, start: Any, tmp_path: Path) -> None:
    values, count, parallel, study_spec = SCENARIOS[scenario]

    def begin(folder: Path) -> tuple[Emulator, Outcome]:
        emulator = start(*values, folder=folder.name)
        study = submit(emulator, count, parallel, **study_spec)
        return emulator, lambda: [
            shown(emulator, study)["state"],
            states(emulator, study),
            [trial.get("finalMeasurement", {}).get("metrics") for trial in shown(emulator, study)["trials"]],
            len(lines(emulator, study, "stopped")),
            emulator.machine.containers,
            set(emulator.machine.started.values()),
        ]

    assert_that_no_kill_changes_the_end(tmp_path, begin)


def test_study_starts_with_trial_that_has_ended(
    emulator: Emulator, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconcile = Reconciler.advance

    def reconcile_unless_trial_runs(reconciler: Reconciler, study: Job) -> float | None:
        with reconciler.database.read() as transaction:
            jobs = transaction.jobs.of_study(study.id)
        return reconcile(reconciler, study) if all(job.is_terminal for job in jobs) else 1.0

    monkeypatch.setattr(Reconciler, "advance", reconcile_unless_trial_runs)
    machine.program = reports
    study = submit_study(emulator, trials=1, parallel=1)
    emulator.run()
    job = emulator.job(study)
    with emulator.database.read() as transaction:
        (trial,) = transaction.trials.all(study)
    assert (job.state, job.started) == (SUCCEEDED, trial.started)
    assert "Job is running." in log_texts(emulator, study)


def in_states(states: str) -> list[Trial]:
    """One trial per letter: s(ucceeded), i(nfeasible), a(ctive)."""
    names = {"s": "SUCCEEDED", "i": "INFEASIBLE", "a": "ACTIVE"}
    return [Trial("7", i, names[state], {"x": 0.5}, str(i)) for i, state in enumerate(states, 1)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("states", "allowed", "state"),
    [
        ("", 0, None),
        ("aa", 0, None),
        ("ss", 0, None),
        ("sss", 0, SUCCEEDED),
        ("i", 0, FAILED),
        ("ai", 0, FAILED),
        ("si", 0, None),
        ("sii", 0, FAILED),
        ("ssi", 0, SUCCEEDED),
        ("ia", 2, None),
        ("ii", 2, FAILED),
        ("iss", 2, SUCCEEDED),
    ],
)
def test_study_end_follows_from_its_trials(states: str, allowed: int, state: str | None) -> None:
    study = tuning_job(tuning_job_spec(trials=3, **({"maxFailedTrialCount": allowed} if allowed else {})))
    found = decide_ending(study, in_states(states), 1)
    assert (found.state if found else None) == state


def test_failed_step_loses_no_stored_trial(
    emulator: Emulator, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_trial = Reconciler._add_trial
    failures: list[str] = ["once"]

    def fail_after_storing(reconciler: Reconciler, *arguments: Any) -> Trial | None:
        trial = add_trial(reconciler, *arguments)
        if failures:
            raise RuntimeError(failures.pop())
        return trial

    monkeypatch.setattr(Reconciler, "_add_trial", fail_after_storing)
    machine.program = reports
    study = submit_study(emulator, trials=3, parallel=1)
    emulator.run()
    assert states(emulator, study) == ["SUCCEEDED"] * 3
