"""Declared schedules: which jobs they may name, in which order, and what those jobs cannot have."""

from pathlib import Path

import pytest
from vertex_training.plan.training import Timetable

from tests.components.projects import CLOUD_INCLUDING, INCLUDING, load, problems

POOL = "machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: example.com/a}"
TEMPLATE = "lifecycle: {run: scheduled}"


def job(args: str = "[]", *more: str) -> str:
    """A custom job in YAML's flow style."""
    pool = POOL.replace("}, containerSpec: {", f"}}, containerSpec: {{args: {args}, ")
    return "{" + ", ".join([f"jobSpec: {{workerPoolSpecs: [{{{pool}}}]}}", *more]) + "}"


NIGHTLY = f"""
customJobs:
  digits: {job("[]", TEMPLATE)}
schedules:
  nightly: {{cron: "0 2 * * *", job: digits}}
"""


def test_a_schedule_has_its_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, INCLUDING, jobs=NIGHTLY)
    assert settings.schedules == (
        Timetable("nightly", "0 2 * * *", ("digits",), time_zone="UTC", paused=False, overlap="skip"),
    )
    assert settings.jobs == ()
    assert [job.name for job in settings.scheduled.values()] == ["digits"]


def test_vars_fill_in_a_schedule(tmp_path: Path) -> None:
    stack = INCLUDING + "  vertex-training:vars: {cron: 0 3 * * MON, isPaused: true}\n"
    text = "vars: {cron: 0 2 * * *, isPaused: false}\n" + NIGHTLY.replace(
        '"0 2 * * *"', '"${vars.cron}", timeZone: Europe/Berlin, overlap: allow, paused: "${vars.isPaused}"'
    )
    (schedule,) = load(tmp_path, stack, jobs=text).schedules
    assert schedule == Timetable("nightly", "0 3 * * MON", ("digits",), "Europe/Berlin", True, "allow")


def test_a_stack_file_may_declare_schedules(tmp_path: Path) -> None:
    stack = INCLUDING + '  vertex-training:schedules: {nightly: {cron: "0 2 * * *", job: digits}}\n'
    settings = load(tmp_path, stack, jobs=NIGHTLY.partition("schedules:")[0])
    assert [schedule.name for schedule in settings.schedules] == ["nightly"]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("{job: digits}", "jobs.yaml:5: schedules.nightly.cron: is required"),
        (
            "{cron: 0 25 * * *, job: digits}",
            'schedules.nightly.cron: "0 25 * * *": the hour is "25", and must be 0 to 23',
        ),
        ("{cron: 0 2 30 2 *, job: digits}", 'schedules.nightly.cron: "0 2 30 2 *": no month 2 has a day 30'),
        (
            "{cron: 0 2 * * *, timeZone: Berlin, job: digits}",
            '"Berlin" is not a time zone; did you mean Europe/Berlin?',
        ),
        ("{cron: 0 2 * * *, overlap: wait, job: digits}", "schedules.nightly.overlap: "),
        ("{cron: 0 2 * * *, pause: true, job: digits}", "schedules.nightly.pause: unknown field; did you mean paused?"),
        ("{cron: 0 2 * * *, job: digit}", 'schedules.nightly.job: "digit" is not a declared job; did you mean digits?'),
        ("{cron: 0 2 * * *, job: digits, jobs: [digits]}", "schedules.nightly.jobs: is given beside job"),
        ("{cron: 0 2 * * *, jobs: [digits, digits]}", 'schedules.nightly.jobs[1]: "digits" is in the list already'),
        ("nightly", "schedules.nightly: must be an object with named fields"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(schedule: str, message: str, tmp_path: Path) -> None:
    jobs = f"customJobs:\n  digits: {job('[]', TEMPLATE)}\nschedules:\n\n"
    text = f"{jobs}  nightly: {schedule}\n  other: {{cron: 0 2 * * *, job: digits}}\n"
    found = problems(tmp_path, INCLUDING, jobs=text)
    assert any(message in line for line in found), found
    assert all("jobs.yaml:5: schedules.nightly" in line for line in found)


def test_a_schedule_needs_a_job(tmp_path: Path) -> None:
    assert problems(tmp_path, INCLUDING, jobs='schedules:\n  nightly: {cron: "0 2 * * *", jobs: []}\n') == [
        "jobs.yaml:2: schedules.nightly: needs a job: write job: NAME, "
        "or jobs: [NAME, …] for several, one after another"
    ]


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = f"""\
        customJobs:
          digits: {job()}
          unnamed: {job("[]", TEMPLATE)}
        schedules:
          every night: {{cron: "0 2 * * *", job: digits}}
          nightly: {{cron: "61 2 * * *", timeZone: Mars, job: digits}}
          weekly: {{cron: "0 2 * * 0", jobs: [digits, unknown]}}
        """
    assert problems(tmp_path, INCLUDING, jobs=text) == [
        "jobs.yaml:3: customJobs.unnamed.lifecycle.run: no schedule names this job; add it to one under schedules",
        'jobs.yaml:5: schedules.every night: "every night" must be '
        'lower-case letters, digits, "-", "_" and ".", at most 63',
        'jobs.yaml:6: schedules.nightly.cron: "61 2 * * *": the minute is "61", and must be 0 to 59',
        'jobs.yaml:6: schedules.nightly.timeZone: "Mars" is not a time zone; '
        "write a name of the tz database, such as Europe/Berlin or UTC",
        'jobs.yaml:6: schedules.nightly.job: "digits" is a job that `pulumi up` submits; '
        "give it lifecycle: {run: scheduled}",
        'jobs.yaml:7: schedules.weekly.jobs[0]: "digits" is a job that `pulumi up` submits; '
        "give it lifecycle: {run: scheduled}",
        'jobs.yaml:7: schedules.weekly.jobs[1]: "unknown" is not a declared job; known: digits, unnamed',
    ]


def test_a_name_is_declared_once(tmp_path: Path) -> None:
    stack = INCLUDING + '  vertex-training:schedules: {nightly: {cron: "0 2 * * *", job: digits}}\n'
    (problem,) = problems(tmp_path, stack, jobs=NIGHTLY)
    assert 'schedules.nightly: "nightly" is declared already, at stacks/Pulumi.dev.yaml:4' in problem


def test_what_up_does_for_a_job_is_not_for_templates(tmp_path: Path) -> None:
    others = "wait: true, deadline: 60s, after: [other], onDelete: keep, rerun: 1, adopt: 1"
    lifecycle = TEMPLATE.replace("}", f", {others}}}")
    text = NIGHTLY.replace(TEMPLATE, lifecycle).replace("schedules:", f"  other: {job()}\nschedules:")
    found = problems(tmp_path, INCLUDING, jobs=text)
    places = [line.partition(": is not for a job with lifecycle.run: scheduled: ")[0] for line in found]
    keys = ("wait", "deadline", "after", "onDelete", "rerun", "adopt")
    assert places == [f"jobs.yaml:3: customJobs.digits.lifecycle.{key}" for key in keys]


def test_a_misspelt_run_is_reported_once(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, INCLUDING, jobs=NIGHTLY.replace("run: scheduled", "run: nightly"))
    assert "customJobs.digits.lifecycle.run: " in problem


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            '["$${HOME}"]',
            'a literal "${" is not for a job with lifecycle.run: scheduled: Cloud Workflows would evaluate it',
        ),
        ('["$${run.id}"]', 'a literal "${" is not for a job'),
        ('["a ${HOME"]', 'a literal "${" is not for a job'),
        ('["${run.id}"]', "${run.id} is not a reference that is allowed here"),
        ('["${secrets.token}"]', "${secrets.token} is not for a job with lifecycle.run: scheduled: it would stand in"),
    ],
)
@pytest.mark.parametrize("stack", [INCLUDING, CLOUD_INCLUDING])
def test_texts_that_workflows_would_evaluate_are_refused(stack: str, args: str, message: str, tmp_path: Path) -> None:
    secrets = "  vertex-training:secrets: {token: hidden}\n"
    (problem,) = problems(tmp_path, stack + secrets, jobs=NIGHTLY.replace("args: []", f"args: {args}"))
    assert problem.startswith("jobs.yaml:3: customJobs.digits.jobSpec.workerPoolSpecs[0].containerSpec.args[0]: ")
    assert message in problem


def test_a_long_name_leaves_room_for_the_run(tmp_path: Path) -> None:
    name = f"displayName: {'d' * 100}, {TEMPLATE}"
    (problem,) = problems(tmp_path, INCLUDING, jobs=NIGHTLY.replace(TEMPLATE, name))
    assert problem.endswith("displayName: has 100 characters; at most 99 leave room for the id of a run")
    load(tmp_path, INCLUDING, jobs=NIGHTLY.replace(TEMPLATE, name.replace("dd", "d", 1)))


def test_labels_of_schedules_are_reserved(tmp_path: Path) -> None:
    labels = f"labels: {{pulumi_schedule: x}}, {TEMPLATE}"
    (problem,) = problems(tmp_path, INCLUDING, jobs=NIGHTLY.replace(TEMPLATE, labels))
    assert "labels.pulumi_schedule: is a label that a schedule gives its jobs itself" in problem


def two_jobs(schedules: str, first: str = TEMPLATE) -> str:
    """A job that uses the name of another one, `first.one`."""
    return f"""
customJobs:
  first.one: {job("[]", first)}
  second: {job('["--from=${jobs.first.one.name}"]', TEMPLATE)}
schedules:
  {schedules}
"""


def test_a_later_job_of_a_run_uses_results_of_earlier_ones(tmp_path: Path) -> None:
    both = two_jobs('nightly: {cron: "0 2 * * *", jobs: [first.one, second]}')
    (schedule,) = load(tmp_path, INCLUDING, jobs=both).schedules
    assert schedule.jobs == ("first.one", "second")


@pytest.mark.parametrize(
    ("schedules", "message"),
    [
        (
            'nightly: {cron: "0 2 * * *", jobs: [second, first.one]}',
            "schedule nightly has not run first.one before second; write jobs: [first.one, second]",
        ),
        (
            'nightly: {cron: "0 2 * * *", job: second}\n  other: {cron: "0 3 * * *", job: first.one}',
            "schedule nightly has not run first.one before second; write jobs: [first.one, second]",
        ),
    ],
)
def test_results_of_other_runs_are_refused(schedules: str, message: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, INCLUDING, jobs=two_jobs(schedules))
    path = "jobSpec.workerPoolSpecs[0].containerSpec.args[0]: ${jobs.first.one.name}: "
    assert problem == f"jobs.yaml:4: customJobs.second.{path}{message}"


def test_results_between_up_and_schedules_are_refused(tmp_path: Path) -> None:
    of_up = two_jobs('nightly: {cron: "0 2 * * *", job: second}', first="lifecycle: {}")
    (problem,) = problems(tmp_path, INCLUDING, jobs=of_up)
    assert "schedule nightly has not run first.one before second" in problem
    text = two_jobs('nightly: {cron: "0 2 * * *", job: first.one}').replace(
        f", {TEMPLATE}}}\nschedules", ", lifecycle: {after: [first.one]}}\nschedules"
    )
    assert [line.partition("customJobs.second.")[2] for line in problems(tmp_path, INCLUDING, jobs=text)] == [
        "jobSpec.workerPoolSpecs[0].containerSpec.args[0]: ${jobs.first.one.name}: "
        "first.one runs by a schedule only, so `pulumi up` does not know its results",
        'lifecycle.after[0]: "first.one" runs by a schedule only',
    ]
