"""Reviews that know how the jobs ran: what a rehearsal tells of a preview."""

import json
from pathlib import Path
from typing import Any

import pytest
from vertex_training.cli import main
from vertex_training.rehearsal_file import to_json
from vertex_training.review.markdown import render_markdown
from vertex_training.review.rehearsed import RehearsedJob
from vertex_training.review.review import MAX_LENGTH, build_review, render_json

from tests.blocks import taken

from .recorded_previews import HERE, find_step, parse, read_recorded
from .rehearsals import CASES, REASON, rehearsal, report, search_of

EDIT = read_recorded("code-edit")


def reviewed(*jobs: Any, fields: dict[str, Any] = EDIT) -> str:
    """Return the review of a preview with a rehearsal of these jobs."""
    return render_markdown(build_review(parse(fields), rehearsal=rehearsal(*jobs)))


def found(*jobs: Any, fields: dict[str, Any] = EDIT) -> tuple[RehearsedJob, ...]:
    """Return what is found of these jobs."""
    review = build_review(parse(fields), rehearsal=rehearsal(*jobs))
    assert review.rehearsal
    return review.rehearsal.jobs


@pytest.mark.parametrize("case", CASES)
def test_a_rehearsed_review_is_the_golden_one(case: str) -> None:
    text = render_markdown(CASES[case]())
    assert text == (HERE / "golden" / f"{case}.md").read_text()
    assert len(text) <= MAX_LENGTH and len(render_json(CASES[case]())) <= MAX_LENGTH


def test_the_page_shows_the_actual_answers() -> None:
    golden = (HERE / "golden" / "rehearsed.md").read_text().splitlines()
    assert taken("docs/ci.md", "markdown") == ["\n".join(golden[:5]) + "\n"]


def test_the_answers_come_first() -> None:
    title, *answers, blank, _ = reviewed(report("train", 0.95), report("evaluate", None)).split("\n", 6)
    assert (title, blank) == ("### Preview of `dev`", "")
    assert answers == [
        "- **Runs**: yes, 2 rehearsed jobs",
        "- **Model**: changed: `train` `accuracy` 0.941 → 0.95",
        "- **Data**: no new bucket or variable",
        "- **Cost**: this update runs 2 of 2 jobs: 90.72 USD at most, expected unknown: no earlier runs",
    ]


@pytest.mark.parametrize(
    ("goal", "accuracy", "verdict"),
    [
        ("MAXIMIZE", 0.95, "better"),
        ("MAXIMIZE", 0.93, "worse"),
        ("MINIMIZE", 0.95, "worse"),
        ("MINIMIZE", 0.93, "better"),
        ("GOAL_TYPE_UNSPECIFIED", 0.95, "better"),  # as the service takes it
        ("MINIMIZE", 0.941, "same"),
    ],
)
def test_a_search_says_which_metric_is_better(goal: str, accuracy: float, verdict: str) -> None:
    # The job `train` runs the same image, so what the search wants is wanted of it too.
    for job in found(report("train", accuracy), report("search", accuracy), fields=search_of(EDIT, goal)):
        assert [metric.verdict for metric in job.metrics] == [verdict]


def test_other_parameters_are_no_worse_model() -> None:
    edit, base = search_of(EDIT), report("search", 0.93)["base"]
    same = report("search", 0.93, parameters={"lr": 0.1}, base={**base, "parameters": {"lr": 0.1}})
    assert "- **Model**: ⚠️ worse: `search` `accuracy` 0.941 → 0.93\n" in reviewed(same, fields=edit)
    other = {**same, "parameters": {"lr": 0.2}}
    text = "- **Model**: changed: `search` `accuracy` 0.941 → 0.93 with other parameters\n"
    assert text in reviewed(other, fields=edit)


def test_no_direction_is_guessed() -> None:
    (train,) = found(report("train", 0.95))
    assert train.metrics[0].verdict == ""
    other = search_of(EDIT)
    other["steps"][-1]["newState"]["inputs"]["spec"]["trialJobSpec"]["workerPoolSpecs"][0]["containerSpec"] = {
        "imageUri": "localhost/other:1"
    }
    assert found(report("train", 0.95), fields=other)[0].metrics[0].verdict == ""
    both = search_of(search_of(EDIT), "MINIMIZE")
    both["steps"][-1]["urn"] += "-of-loss"
    jobs = found(report("train", 0.95), report("search", 0.95), report("search-of-loss", 0.95), fields=both)
    # Each search has its own word.
    assert {job.name: job.metrics[0].verdict for job in jobs} == {
        "train": "",
        "search": "better",
        "search-of-loss": "worse",
    }


def test_a_metric_that_a_search_needs_is_missed() -> None:
    lost = report("train", None, missingMetrics=["accuracy"], metrics={"acc": 0.9})
    text = reviewed(lost, report("search", 0.95), fields=search_of(EDIT))
    assert "- **Model**: ❌ `train` no longer reports `accuracy`, which `search` needs; better: `search`" in text
    assert "`train` (CustomJob) ran 40 s → 41 s, no longer reports `accuracy`, which `search` needs, " in text
    never = {**lost, "base": {"outcome": "succeeded", "metrics": {"acc": 0.9}}}
    assert "`train` does not report `accuracy`, which `search` needs" in reviewed(never, fields=search_of(EDIT))
    other = {**lost, "name": "search", "base": {"outcome": "succeeded", "seconds": 40, "metrics": {"accuracy": 0.5}}}
    both = reviewed(lost, other, fields=search_of(EDIT))
    assert "- **Model**: ❌ `train`, `search` no longer report `accuracy`, which `search` needs\n" in both
    assert "- `search` (CustomJob) ran 40 s → 41 s, no longer reports `accuracy`, which it needs, " in both


def test_a_failure_shows_its_last_lines_folded() -> None:
    reason = f"{REASON}\n```\n</details>\n/merge @everyone\n\x1b[31m" + "".join(f"\nline {line}" for line in range(20))
    text = reviewed(report("train", 0.95), report("evaluate", None, outcome="failed", reason=reason, seconds=3))
    assert "- **Runs**: ❌ no, 1 of 2 jobs failed: `evaluate`: `The replica workerpool0-0 exited with" in text
    assert "status of 1.`, and its log ends with `line 2`\n" in text
    assert text.index("- `evaluate` (CustomJob) **failed** after 3 s: `The replica") < text.index(
        "- `train` (CustomJob) ran"
    )
    _, _, folded = text.partition(
        "<details><summary>1 failed job, with last lines</summary>\n\n- `evaluate`:\n  ````\n"
    )
    block, _, _ = folded.partition("\n  ````\n")
    assert len(block.splitlines()) == 10 and all(line.startswith("  ") for line in block.splitlines())
    assert "\\u001b[31m" in block and "line 3" not in block


def test_a_failure_of_the_base_is_told() -> None:
    failed = report("train", None, outcome="failed", reason=REASON)
    failed["base"]["outcome"] = "failed"
    text = reviewed(failed)
    assert "❌ no, 1 of 1 job failed, in the base too: `train`" in text
    assert "- `train` (CustomJob) **failed**, as in the base, after 40 s → 41 s: " in text
    assert "in the base too" not in reviewed(failed, report("evaluate", None, outcome="failed", reason=REASON))


def test_jobs_without_a_rehearsal_are_named() -> None:
    skipped = {"name": "train", "kind": "CustomJob", "outcome": "skipped", "reason": "uses secrets"}
    text = reviewed(skipped)
    assert "- **Runs**: not known, as no job was rehearsed; skipped: `train`; not rehearsed: `evaluate`" in text
    assert "- `train` (CustomJob) skipped: `uses secrets`" in text
    assert "**Model**: not known" in text and "**Data**: not compared" in text
    text = reviewed(report("train", 0.95, before=None))
    assert "**Model**: not compared: `train` `accuracy` 0.95\n" in text


def test_without_jobs_nothing_is_answered() -> None:
    grants = read_recorded("code-edit")
    grants["steps"] = [step for step in grants["steps"] if step["op"] == "same"]
    assert reviewed(fields=grants) == render_markdown(build_review(parse(grants)))
    assert "**Runs**: not known, as no job was rehearsed; not rehearsed: `evaluate`, `train`\n" in reviewed()


@pytest.mark.parametrize(
    ("strategy", "resumed", "warns"), [("SPOT", False, True), ("SPOT", True, False), ("STANDARD", False, False)]
)
def test_a_spot_job_that_begins_anew_is_a_warning(strategy: str, resumed: bool, warns: bool) -> None:
    fields = json.loads(json.dumps(EDIT))
    spec = find_step(fields, "train")["newState"]["inputs"]["spec"]["jobSpec"]
    spec["scheduling"] = {"strategy": strategy}
    drill = {"fault": "preempt", "resumed": resumed, "fromStep": 40, "lostSteps": 3}
    text = reviewed(report("train", 0.95, drills=[drill]), fields=fields)
    assert ("⚠️ on Spot machines and begins anew when they are taken away: `train`" in text) == warns
    assert (
        "goes on after `preempt` from step 40 (3 steps lost)"
        if resumed
        else "begins anew after `preempt` (3 steps lost)"
    ) in text
    assert "Spot" not in reviewed(report("train", 0.95), fields=fields)
    unknown = reviewed(report("train", 0.95, drills=[{"fault": "preempt", "reason": "it ended first"}]), fields=fields)
    assert "is not known to go on after `preempt`: `it ended first`" in unknown and "Spot" not in unknown
    elsewhere = reviewed(report("train", 0.95, drills=[{**drill, "resumed": True, "sameEnd": False}]))
    assert "goes on after `preempt` from step 40 (3 steps lost) and ends elsewhere" in elsewhere


def test_what_a_job_uses_anew_is_named() -> None:
    new = report(
        "train", 0.95, buckets=["acme-other", "acme-dev-vertex-training-dev"], hosts=["a.dev"], newEnv=["TOKEN"]
    )
    text = reviewed(new)
    assert "- **Data**: new bucket `acme-other`, new host `a.dev`, new variable `TOKEN`\n" in text
    access = "secretmanager.versions.access on secrets/hf-token"
    text = reviewed(report("train", 0.95, permissions=[access], newPermissions=[access], notGranted=[access]))
    assert f"⚠️ not granted: `{access}`; new permission `{access}`\n" in text
    assert f"is not granted `{access}`, new permission `{access}`" in text
    for recorded, noun in (
        ({"buckets": [], "replicas": []}, "variable"),
        ({"buckets": []}, "bucket or variable"),
        ({"hosts": ["a.dev"], "base": {"hosts": ["a.dev"]}}, "bucket, host or variable"),
        ({"permissions": ["a.b.c on gs://d"]}, "bucket, permission or variable"),
    ):
        assert f"- **Data**: no new {noun}\n" in reviewed(report("train", 0.95, **{"buckets": [], **recorded}))


def test_changed_and_missing_data_are_named() -> None:
    fields = json.loads(json.dumps(EDIT))
    step = find_step(fields, "train")
    old = {"uri": "gs://acme/@all", "objects": 1, "bytes": 8, "digest": "0", "contents": {"a": "0"}}
    step["oldState"]["inputs"]["data"] = {"days": old}
    step["newState"]["inputs"]["data"] = {"days": {**old, "digest": "1", "contents": {"a": "1", "b": "1"}}}
    text = reviewed(report("train", 0.95), fields=fields)
    assert "- **Data**: `days`: `1 object added, 1 changed, 8 bytes`\n" in text
    step["newState"]["inputs"]["data"]["days"]["uri"] = "gs://acme/@team"
    text = reviewed(report("train", 0.95, missingInputs=["gs://acme/a.csv"], hosts=["a.dev"]), fields=fields)
    place = "`days`: `gs://acme/@all → gs://acme/@team, 1 object, 8 bytes`"
    assert f"- **Data**: {place}; ⚠️ not found: `gs://acme/a.csv`; new host `a.dev`\n" in text
    assert f"because of data {place}" in text and "did not find `gs://acme/a.csv`, new host" in text


def test_close_metrics_are_told_apart() -> None:
    assert "`accuracy` 0.94101 → 0.94102" in reviewed(report("train", 0.94102, 0.94101))
    assert "- **Model**: as in the base, by 1 metric" in reviewed(report("train", 0.94102, 0.94102))


def test_the_fullest_replica_is_shown() -> None:
    gib = 1 << 30
    replicas = [
        {"name": "a", "peakMemoryBytes": 9 * gib, "memoryBytes": 60 * gib},
        {"name": "b", "peakMemoryBytes": 7 * gib, "memoryBytes": 15 * gib},
        {"name": "c"},
    ]
    assert "peak memory 7.0 of 15 GiB" in reviewed(report("train", 0.95, replicas=replicas))


def test_metrics_of_a_search_come_first() -> None:
    job = report("train", None, metrics={"a": 1.0, "accuracy": 0.95, "b": 2.0})
    assert "`accuracy` 0.941 → 0.95 (better), `a` 1, `b` 2, wrote" in reviewed(job, fields=search_of(EDIT))


def test_more_metrics_than_fit_are_counted() -> None:
    ten, eleven = (reviewed(report("train", None, metrics={f"m{i}": 1.0 for i in range(count)})) for count in (10, 11))
    assert "more metrics" not in ten and "`m9` 1, wrote" in ten
    assert "`m10`" not in eleven and "1 more metrics, wrote" in eleven


def test_a_rehearsal_shows_no_path_of_the_machine() -> None:
    reason = f"/home/ci/training/train.py is missing\n{'x' * 3_000}"
    failed = rehearsal(report("train", None, outcome="failed", reason=reason))
    review = build_review(parse(EDIT), rehearsal={**failed, "base": "/home/ci/main.json"})
    assert "against `…/main.json`" in render_markdown(review) and "…/train.py is missing" in render_markdown(review)
    assert "/home" not in render_markdown(review) + render_json(review)
    assert "x" * 1_900 in render_markdown(review) and "x" * 2_000 not in render_markdown(review)


def test_jobs_that_did_alike_share_a_line() -> None:
    jobs = [report(f"job-{number:03}", 0.95, 0.95, seconds=number) for number in range(200)]
    failed = [report(f"bad-{number}", None, outcome="failed", reason=f"{REASON} {number}") for number in range(40)]
    text = reviewed(*jobs, *failed)
    assert "- 200 jobs ran under 1 s to 199 s: `job-000`, `job-001`, " in text
    assert "- 40 jobs **failed** after 41 s: `The replica workerpool0-0 exited" in text
    assert (
        "<details><summary>240 rehearsed jobs</summary>" in text and "<summary>40 failed jobs, with last lines" in text
    )


def test_names_in_a_rehearsal_inject_nothing() -> None:
    hostile = "x`\n</details>\n@everyone <img src=x onerror=alert(1)>\n/close\n| a | b"
    job = report(hostile, 0.95, kind="CustomJob", metrics={hostile: 1.0}, hosts=[hostile], missingMetrics=[hostile])
    job |= {"files": {"count": 1, "bytes": 1, "names": [hostile]}, "drills": [{"fault": hostile, "resumed": False}]}
    text = reviewed(job, report(f"{hostile}2", None, outcome="failed", reason=hostile))
    assert text.count("</details>\n") == text.count("<details>") + 1  # the one in the fenced block
    for line in text.replace(f"  {hostile.splitlines()[2]}\n", "").splitlines():
        outside = "".join(part for index, part in enumerate(line.split("``")) if index % 2 == 0)
        assert "@everyone" not in outside and "onerror" not in outside


def test_a_rehearsal_is_given_as_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preview, file = str(HERE / "recorded" / "code-edit.json"), tmp_path / "rehearsal.json"
    file.write_text(to_json(rehearsal(report("train", 0.95), report("evaluate", None))))
    assert main(["review", preview, "--rehearsal", str(file)]) == 0
    assert capsys.readouterr().out == reviewed(report("train", 0.95), report("evaluate", None))
    assert main(["review", preview, "--rehearsal", str(file), "--format", "json"]) == 0
    train, evaluate = json.loads(capsys.readouterr().out)["rehearsal"]["jobs"]
    metric = {"name": "accuracy", "old": 0.941, "new": 0.95, "verdict": "", "needed_by": []}
    assert train["metrics"][0] == {**metric, "has_other_parameters": False}
    assert (train["peak_memory"], evaluate["outcome"]) == (2254857830, "succeeded")
    assert main(["review", preview, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rehearsal"] is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "is not the file of a rehearsal; make it with `vertex-training rehearse --save "),
        ('{"version": 1, "jobs": [{"name": "a"}]}', "jobs[0].outcome: is missing; make it with "),
        (
            '{"version": 1, "project": "b", "jobs": []}',
            "is a rehearsal of the project b; rehearse vertex-training there",
        ),
    ],
)
def test_a_wrong_rehearsal_has_one_error(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.json").write_text(text)
    assert main(["review", str(HERE / "recorded" / "first.json"), "--rehearsal", str(tmp_path / "r.json")]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith(f"vertex-training: {tmp_path / 'r.json'}: {reason}")
    assert captured.err.count("\n") == 1
