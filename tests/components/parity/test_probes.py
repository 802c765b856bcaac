"""Probes are about rows of docs/fidelity.md, cost what is said, and mark what they make; what they show is masked."""

import re
from pathlib import Path
from typing import Any

import pytest
from vertex_training.parity import command, probes, report
from vertex_training.parity.side import Answer, Journal, ParityFailed, Run, masked

from vertex_api.estimates.prices import bundled_prices
from vertex_api.names import KINDS

RUN = Run("parity-1", "acme-canary", "us-central1", "", "acme-bucket", True, "/nowhere")
ALL = probes.load(["*"])
OPTIONS: dict[str, Any] = {
    "project": "acme-canary",
    "region": "us-central1",
    "budget": 2.0,
    "bucket": "",
    "only": (),
    "endpoint": "",
    "against": None,
    "capture": None,
    "json": None,
    "yes": True,
}


def test_there_are_at_least_forty_probes() -> None:
    assert len(probes.load()) >= 40
    assert {each.name for each in ALL} - {each.name for each in probes.load()} == {"out-of-memory", "quota"}


def test_each_probe_is_about_rows_of_the_page() -> None:
    page = (Path(__file__).parents[3] / "docs" / "fidelity.md").read_text()
    rows = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
    assert {row for probe in ALL for row in probe.rows} - rows == set()
    assert all(probe.rows and probe.steps for probe in ALL)


def test_a_probe_labels_all_that_it_makes() -> None:
    for probe in ALL:
        for step in probe.steps:
            if step.method == "POST" and step.path.partition("?")[0] in {*KINDS, "models:upload"}:
                body = step.body.get("model", step.body)
                assert body["labels"]["parity_run"] == "${run}", probe.name


def test_all_probes_together_cost_less_than_the_default_budget() -> None:
    prices = bundled_prices()
    total = sum(each.cost("us-central1", prices) for each in probes.load())
    assert 0.5 < total < 2
    (success,) = probes.load(["success"])
    # Ten minutes of 4 vCPUs, 16 GiB and a boot disk of 100 GiB.
    assert success.cost("us-central1", prices) == pytest.approx(0.03, abs=0.002)


def test_a_run_above_its_budget_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.parity(command.Options(**{**OPTIONS, "budget": 0.01})) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "--budget: 0.01 USD is less than" in shown.err
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"yes": False}, "give --yes"), ({"only": ["no-such"]}, "no probe is named no-such; --list shows them")],
)
def test_nothing_runs_without_consent_or_probes(
    options: dict[str, Any],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.parity(command.Options(**OPTIONS | options)) == 2
    assert reason in capsys.readouterr().err


def test_what_is_shown_names_nobody() -> None:
    answer = {
        "name": "projects/123456789012/locations/us-central1/customJobs/7468771114961862656",
        "createTime": "2026-11-26T10:00:00.123456Z",
        "etag": "abc",
        "error": {
            "message": "acme-canary: nobody@acme-canary.iam.gserviceaccount.com may not read gs://acme-bucket/x with "
            "ya29.a0Af_secret; see https://console.example.com/x?project=123456789012 for job_id%2F7468771114961862656"
        },
        "labels": {"parity_run": "parity-1"},
    }
    text = str(masked(answer, RUN, "python:3"))
    for secret in ("acme", "123456789012", "7468771114961862656", "ya29", "nobody", "2026-11-26", "abc", "parity-1"):
        assert secret not in text
    assert "may not read gs://BUCKET/x with TOKEN" in text


def answers(body: Any, states: tuple[str, ...] = ()) -> list[Answer]:
    return [Answer("POST customJobs", 200, "application/json", {}), Answer("GET ${job}", 200, "", body, states)]


@pytest.mark.parametrize(
    ("service", "emulator", "differs"),
    [
        (("PENDING", "RUNNING", "FAILED"), ("PENDING", "FAILED"), False),
        (("PENDING", "RUNNING", "PENDING", "RUNNING", "FAILED"), ("PENDING", "RUNNING", "FAILED"), False),
        (("PENDING", "FAILED"), ("PENDING", "SUCCEEDED"), True),
        (("RUNNING", "PENDING", "FAILED"), ("PENDING", "RUNNING", "FAILED"), True),
    ],
)
def test_orders_of_states_may_lack_what_a_poll_misses(
    service: tuple[str, ...], emulator: tuple[str, ...], differs: bool
) -> None:
    (probe,) = probes.load(["success"])
    found = report.compare(probe, answers({}, service), answers({}, emulator))
    assert [each.path for each in found.differences] == (["states"] if differs else [])


def test_types_and_missing_fields_differ() -> None:
    (probe,) = probes.load(["success"])
    found = report.compare(probe, answers({"a": 1, "b": [1], "c": 2}), answers({"a": "1", "b": [1, 2]}))
    assert [(each.path, each.service, each.emulator) for each in found.differences] == [
        ("body.a", "1", "1"),
        ("body.b", "[1]", "[1, 2]"),
        ("body.c", "2", ""),
    ]


def test_a_journal_keeps_the_runs_that_are_not_clean(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.add(RUN)
    assert journal.runs() == [RUN]
    journal.remove(RUN)
    assert [*tmp_path.iterdir()] == []
    journal.file.write_text("not a journal\n")
    with pytest.raises(ParityFailed, match="is no journal of parity"):
        journal.runs()


def test_captured_answers_of_an_older_probe_are_refused(tmp_path: Path) -> None:
    (probe,) = probes.load(["success"])
    report.save(tmp_path, probe, answers({"a": 1}, ("PENDING",)))
    assert report.read(tmp_path, probe) == answers({"a": 1}, ("PENDING",))
    report.save(tmp_path, probe, answers({})[:1])
    with pytest.raises(ParityFailed, match="is of an older probe"):
        report.read(tmp_path, probe)
