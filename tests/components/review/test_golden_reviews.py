"""Reviews of recorded previews: `python -m tests.components.review.recorded_previews` writes the golden files anew."""

import json

import pytest
from vertex_training.review.changes import Cause, JobFinding
from vertex_training.review.markdown import group_jobs, render_markdown
from vertex_training.review.review import MAX_LENGTH, build_review, render_json

from tests.components.review import recorded_previews
from tests.components.review.recorded_previews import CASES, HERE, MANY, find_step, multiply_job, parse, read_recorded

ALL = [*CASES, f"{MANY}-jobs"]


def test_there_is_a_case_for_each_kind_of_change() -> None:
    assert set(ALL) == {
        "1000-jobs",
        "bucket-removed",
        "code-edit",
        "failed",
        "first",
        "guardrail-refusal",
        "machine-change",
        "promotion",
    }


@pytest.mark.parametrize("case", ALL)
def test_a_review_is_the_golden_one(case: str) -> None:
    assert recorded_previews.render_case(case) == (HERE / "golden" / f"{case}.md").read_text()


@pytest.mark.parametrize("case", ALL)
def test_a_review_fits_into_a_comment(case: str) -> None:
    assert 0 < len(recorded_previews.render_case(case)) <= MAX_LENGTH <= 60_000


@pytest.mark.parametrize("case", CASES)
def test_a_review_shows_no_path_of_the_machine(case: str) -> None:
    recorded = (HERE / "recorded" / f"{case}.json").read_text()
    assert "/home/ci/" in recorded and "sourcePosition" in recorded
    review = build_review(parse(read_recorded(case)))
    for text in (render_markdown(review), render_json(review)):
        assert not [part for part in ("/home/", "/tmp/", "site-packages", "project:///", "Traceback") if part in text]


def test_a_review_of_a_thousand_jobs_counts_what_it_cuts() -> None:
    fields = multiply_job("machine-change", MANY)
    review = build_review(parse(fields))
    text = render_markdown(review)
    assert "**1,002 jobs to run again.**" in text
    assert "2,004 submissions: at least 35 min at 60 a minute" in text
    assert "<details><summary>1,002 jobs</summary>" in text
    shown = text.count("-of-a-long-name-number-")
    assert 50 < shown < 1000 and " more" in text
    cut = json.loads(render_json(review))
    assert len(cut["jobs"]) + cut["omitted"]["jobs"] == 1002 and len(render_json(review)) <= MAX_LENGTH


def test_jobs_with_the_same_cause_share_a_line() -> None:
    fields = read_recorded("code-edit")
    train = find_step(fields, "train")
    fields["steps"] += [{**train, "urn": f"{train['urn']}-{number}"} for number in range(500)]
    text = render_markdown(build_review(parse(fields)))
    assert "- 501 jobs to run again because of image `trainer`: `train`, `train-0`, " in text
    assert " and 491 more\n" in text


def test_many_jobs_are_grouped_by_their_commonest_cause() -> None:
    machine = Cause("field", "machineType", "n1-standard-4", "n1-standard-8")
    jobs = [
        JobFinding(f"job-{number}", "CustomJob", "run again", (Cause("field", f"args[{number}]"), machine))
        for number in range(3)
    ]
    jobs.append(JobFinding("plain", "CustomJob", "run again", (machine,)))
    assert [len(group.jobs) for group in group_jobs(jobs, 4)] == [1, 1, 1, 1]
    (group,) = group_jobs(jobs, 3)
    assert group.shared_causes == (machine,) and group.others == 3


def test_a_secret_stays_hidden_in_a_review() -> None:
    recorded = read_recorded("machine-change")
    step = find_step(recorded, "train")
    assert step["newState"]["inputs"]["secrets"] == "[secret]"
    # Only the engine knows that a secret has another value: both are printed alike.
    step["newState"]["inputs"]["spec"] = step["oldState"]["inputs"]["spec"]
    step["diffReasons"] = step["replaceReasons"] = ["secrets"]
    text = render_markdown(build_review(parse(recorded)))
    assert "because of `secrets` `[secret]` → `[secret]`: `train`" in text


def test_changes_of_the_base_are_told_apart() -> None:
    edit, machine = read_recorded("code-edit"), read_recorded("machine-change")
    same = build_review(parse(edit), parse(edit))
    assert (same.images, same.jobs) == ((), ()) and "trainer" in same.pending_in_base
    assert same.before == same.after and same.submissions and same.submissions.count == 4
    review = build_review(parse(machine), parse(edit))
    assert [job.name for job in review.jobs] == ["evaluate", "train"] and review.only_in_base == ("trainer",)
    assert "| Cost by list price | base | after |" in render_markdown(review)
    failed = build_review(parse(machine), parse(read_recorded("guardrail-refusal")))
    assert not failed.has_base and "the preview of the base failed" in failed.warnings[-1]


def test_unchanged_jobs_that_are_not_listed_are_told() -> None:
    fields = read_recorded("machine-change")
    fields["steps"] = [step for step in fields["steps"] if step["op"] != "same"]
    text = render_markdown(build_review(parse(fields)))
    assert "unchanged resources not counted: preview with `--show-sames` to count all jobs" in text
    assert "--show-sames" not in recorded_previews.render_case("machine-change")
