"""Reviews as Markdown: `python -m tests.components.review.recorded_previews` writes the golden files anew."""

import json
from dataclasses import replace
from typing import Any

import pytest
from vertex_training.review.changes import Cause, JobFinding
from vertex_training.review.document import Diagnostic, errors, shorten_paths, warnings
from vertex_training.review.markdown import group_jobs, render_markdown
from vertex_training.review.pieces import code, codes
from vertex_training.review.review import MAX_LENGTH, build_review, render_json

from tests.blocks import taken
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
        "gpu-again",
        "guardrail-refusal",
        "label-added",
        "limit-removed",
        "machine-change",
        "promotion",
        "readme",
        "rename",
    }


@pytest.mark.parametrize("case", ALL)
def test_a_review_is_the_golden_one(case: str) -> None:
    assert recorded_previews.render_case(case) == (HERE / "golden" / f"{case}.md").read_text()


def test_the_page_has_lines_of_golden_reviews() -> None:
    (shown,) = taken("docs/ci.md", "output", "- 2 jobs to update in place")
    golden = [(HERE / "golden" / f"{case}.md").read_text().splitlines() for case in ("label-added", "rename")]
    assert all(line in lines for line, lines in zip(shown.splitlines(), golden, strict=True))


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


def test_a_review_has_the_last_runs_of_jobs_that_would_run() -> None:
    fields = read_recorded("machine-change")
    state = find_stack(fields)
    line = "2026-11-2{}T09:00:00Z {} s on 1 n1-standard-4"
    records = {"train": f"{line.format(1, 7200)}\n{line.format(2, 10800)}", "unknown": line.format(1, 1)}
    state["oldState"]["outputs"] = {"runs": records, "eu-runs": "of a team's own", "others": {"search": 1}}
    review = build_review(parse(fields))
    assert review.earlier_runs.keys() == {"train"}
    text = render_markdown(review)
    assert f"**Earlier runs**\n\n- `train`: {review.earlier_runs['train']}\n" in text
    (expected,) = [each for each in text.splitlines() if each.startswith("| USD expected by earlier runs |")]
    before, after = expected.split("|")[2:4]
    assert 0 < float(before) < float(after)  # the seconds are priced by the machines of each side


def find_stack(fields: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(step for step in fields["steps"] if "::pulumi:pulumi:Stack::" in step["urn"])
    return found


def test_a_long_review_counts_what_it_cuts() -> None:
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


def test_a_review_marks_prices_of_another_region() -> None:
    review = build_review(parse(read_recorded("machine-change")))
    assert review.after and review.bill and "~" not in render_markdown(review)
    nearest = "NVIDIA_L4 at the price of us-east1"
    sides = {"after": replace(review.after, nearest=nearest), "bill": replace(review.bill, nearest=nearest)}
    text = render_markdown(replace(review, **sides))
    (hourly,) = [line for line in text.splitlines() if line.startswith("| USD an hour |")]
    assert [cell.startswith(" ~") for cell in hourly.split("|")[2:4]] == [False, True]
    assert "- ~ counts NVIDIA_L4 at the price of us-east1, the nearest region with one on file\n" in text
    assert ": ~131.13 USD at most" in text.splitlines()[1]


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train", "`train`"),
        ("", "` (empty) `"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("``x```", "```` ``x``` ````"),
        ("@team <b>&amp; [x](y) #1 !2", "`@team <b>&amp; [x](y) #1 !2`"),
        ("two\nlines\r", "`two\\nlines\\u000d`"),
        ("\u202egnp.exe", "`\\u202egnp.exe`"),
        (" x ", "`  x  `"),
    ],
)
def test_code_spans_hold_any_text(text: str, expected: str) -> None:
    assert code(text) == expected


def test_long_lists_are_cut_with_a_count() -> None:
    assert codes(["a", "b", "c"], 2) == "`a`, `b` and 1 more"


def test_names_of_users_inject_nothing_into_a_review() -> None:
    fields = read_recorded("code-edit")
    hostile = "x`\n</details>\n@everyone <img src=x onerror=alert(1)>\n/close\n| a | b"
    step = find_step(fields, "trainer")
    step["newState"]["inputs"]["files"][hostile] = "0" * 12
    find_step(fields, "train")["newState"]["inputs"]["spec"]["displayName"] = hostile
    step["urn"] += hostile
    fields["diagnostics"].append({"severity": "warning", "message": hostile})
    text = render_markdown(build_review(parse(fields)))
    assert text.count("</details>\n") == text.count("<details>")
    own = ("<!--", "###", "**", "- ", "| ", "|--", "Quota", "<details>", "</details>")
    assert [line for line in text.splitlines() if line and not line.startswith(own) and not line[0].isdigit()] == []
    for line in text.splitlines():
        outside = "".join(part for index, part in enumerate(line.split("``")) if index % 2 == 0)
        assert "@everyone" not in outside and "onerror" not in outside


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot read /home/jo/team/train.py", "cannot read …/train.py"),
        ("File '/tmp/x-1/__main__.py' is", "File '…/__main__.py' is"),
        (r"C:\Users\jo\train.py is missing", "…/train.py is missing"),
        ("see https://cloud.google.com/vertex-ai/docs", "see https://cloud.google.com/vertex-ai/docs"),
        ("gs://bucket/a/b and projects/1/locations/x", "gs://bucket/a/b and projects/1/locations/x"),
        ("training/jobs.yaml:4: is", "training/jobs.yaml:4: is"),
        ("reads /gcs/bucket/data", "reads /gcs/bucket/data"),
        ("2 / 3 and /", "2 / 3 and /"),
    ],
)
def test_paths_of_the_machine_lose_their_folders(text: str, shown: str) -> None:
    assert shorten_paths(text) == shown


def test_problems_are_listed_one_by_one() -> None:
    messages = [
        "error: 2 problems in what is declared:\n  a.yaml:1: x: is wrong\n  a.yaml:2: y: is wrong\n",
        "error: an unhandled error occurred: program exited with non-zero exit code: 1\n",
        "\x1b[31merror: train: not submitted\x1b[0m",
        'error: Traceback (most recent call last):\n  File "/home/jo/x.py", line 3, in f\n    f()\nValueError: no\n',
    ]
    diagnostics = [Diagnostic("error", message, "") for message in messages]
    assert errors([*diagnostics, *diagnostics, Diagnostic("info", "Cost", "")]) == [
        "a.yaml:1: x: is wrong",
        "a.yaml:2: y: is wrong",
        "train: not submitted",
        "ValueError: no",
    ]
    assert errors(diagnostics[1:2]) == [messages[1].removeprefix("error: ").strip()]
    assert warnings([Diagnostic("warning", "warning: old\n", "train")]) == ["train: old"]
