"""Probes are about rows of docs/fidelity.md, cost what is said, and mark what they make; what they show is masked."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from google.auth.exceptions import RefreshError
from vertex_training.parity import command, probes, report
from vertex_training.parity.side import Answer, Journal, ParityFailed, Run, Side, masked

from tests.blocks import taken
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


def test_the_page_shows_a_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = taken("docs/parity.md", "yaml")
    (tmp_path / "_base.yaml").write_text((probes._FOLDER / "_base.yaml").read_text())
    (tmp_path / "hours.yaml").write_text(shown)
    monkeypatch.setattr(probes, "_FOLDER", tmp_path)
    (probe,) = probes.load()
    (step,) = probe.steps
    assert (step.method, step.path) == ("POST", "customJobs")
    assert step.body["jobSpec"]["scheduling"]["timeout"] == "1h"


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


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"budget": 0.01}, "--budget: 0.01 USD is less than"),
        ({"budget": float("nan")}, "--budget: nan"),
        ({"region": "mars-east9", "budget": 9.0}, "--region: e2-standard-4"),
        ({"region": "evil.example/"}, '--region: "evil.example/" is not the name of a region'),
        ({"project": "1234567890"}, '--project: "1234567890" is not the id of a project'),
        ({"bucket": "gs://b/c"}, '--bucket: "gs://b/c" is not the name of a bucket'),
        ({"against": Path("/no/such")}, "--against: /no/such is no folder"),
        ({"yes": False}, "give --yes"),
        ({"only": ["no-such"]}, "no probe is named no-such; --list shows them"),
        ({"endpoint": "http://127.0.0.1:1"}, "no answer (ConnectionError)"),
    ],
)
def test_nothing_runs_that_should_not(
    options: dict[str, Any],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.parity(command.Options(**OPTIONS | options)) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count(reason)) == ("", 1)
    assert [*tmp_path.iterdir()] == []


def test_what_is_shown_names_nobody() -> None:
    answer = {
        "name": "projects/123456789012/locations/us-central1/customJobs/7468771114961862656",
        "createTime": "2026-11-26T10:00:00.123456Z",
        "etag": "abc",
        "error": {
            "message": "acme-canary: nobody@acme-canary.iam.gserviceaccount.com may not read gs://acme-bucket/x with "
            "ya29.a0Af_secret; see https://console.example.com/x?project=123456789012 for job_id%2F7468771114961862656 "
            "as%40acme.example or principal://iam.googleapis.com/locations/global/workforcePools/staff/subject/some "
            "in a1b2c3-tp at 10.128.0.7 with AIzaSyA1234567890abcdefghijklmnopqrstuv"
        },
        "labels": {"parity_run": "parity-1"},
        "trials": [{"id": "1", "webAccessUris": {"workerpool0-0": "https://acme.example.com/x"}}],
    }
    assert masked(answer, RUN, "python:3")["trials"] == [
        {"id": "1", "webAccessUris": {"workerpool0-0": "ENDPOINT/x"}},
    ]
    text = str(masked(answer, RUN, "python:3"))
    for secret in (
        "acme",
        "123456789012",
        "7468771114961862656",
        "ya29",
        "nobody",
        "2026-11-26",
        "abc",
        "parity-1",
        "some",
        "staff",
        "a1b2c3",
        "10.128",
        "AIza",
    ):
        assert secret not in text
    assert "may not read gs://BUCKET/x with TOKEN" in text


CANARY = "canaryParityQ7e6xT4wZ"


def test_no_credential_is_in_a_report_or_a_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server or a proxy may repeat what it was sent, in an answer or in a refusal."""

    def send(_self: object, request: requests.PreparedRequest, **_: Any) -> requests.Response:
        assert CANARY in request.headers["Authorization"]
        response = requests.Response()
        response.request, response.headers["Content-Type"] = request, "application/json"
        says = f"no {request.headers['Authorization']!r} here"
        response.status_code = 200 if request.method == "GET" else 400
        response._content = json.dumps({"error": {"message": says, CANARY: [says]}, "state": says}).encode()
        return response

    monkeypatch.chdir(tmp_path)
    for name in ("GOOGLE_OAUTH_ACCESS_TOKEN", "HF_TOKEN", "PULUMI_CONFIG_PASSPHRASE"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setattr(requests.Session, "send", send)
    asked = command._service(replace(RUN, service=None))
    (probe,) = probes.load(["bad-label"])
    answers = command._masked(asked, probe)
    report.save(tmp_path, probe, answers)
    found = [report.compare(probe, answers, [Answer(answers[0].call, 200, "", {})])]
    Journal(tmp_path / "journal").add(RUN)
    with pytest.raises(ParityFailed) as failed:
        asked.make_bucket()
    found += [report.Finding(probe, failure=str(failed.value))]
    texts = [report.to_markdown(found), report.to_json(found), *capsys.readouterr()]
    texts += [file.read_text() for file in tmp_path.iterdir()]
    assert len(texts) == 6 and "TOKEN" in texts[0]
    assert [text for text in texts if CANARY in text] == []


class Session:
    """Gives answers in turn, or raises them; `calls` is what it was asked."""

    def __init__(self, *replies: Any) -> None:
        self.replies, self.calls = [*replies], list[str]()

    def request(self, method: str, url: str, **_: Any) -> Any:
        self.calls.append(f"{method} {url.removeprefix('http://x/v1/')}")
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        status, body = reply
        response = requests.Response()
        response.status_code, response._content = status, json.dumps(body).encode()
        return response


def side(*replies: Any) -> tuple[Side, Session]:
    session = Session(*replies)
    return Side("service", "http://x", "http://x", session, RUN, "image", 0), session


def test_a_job_is_removed_only_if_it_is_gone() -> None:
    name = "projects/1/locations/us-central1/customJobs/2"
    page = {"customJobs": [{"name": name}]}
    running, ended = {"state": "JOB_STATE_RUNNING"}, {"state": "JOB_STATE_CANCELLED"}
    going = {"state": "JOB_STATE_CANCELLING"}
    empty: list[Any] = [(200, {})] * 3
    asked, session = side(
        (200, page), (200, running), (200, {}), (503, {}), (200, going), (429, {}), (200, ended), (200, {}),
        *empty, (200, {}), (204, {}),
    )  # fmt: skip
    asked.clean()
    assert session.replies == []
    assert [call.partition(" ")[0] for call in session.calls[1:8]] == ["GET", "POST", *["GET"] * 4, "DELETE"]
    denied, _ = side((200, page), (403, {"error": {"message": "Permission denied"}}))
    with pytest.raises(ParityFailed, match=r"customJobs/2: is not removed \(Permission denied\)"):
        denied.clean()


def refusal(status: int, message: str, **more: Any) -> tuple[int, Any]:
    return status, {"error": {"code": status, "message": message, **more}}


TOO_MANY = refusal(429, "Quota exceeded for quota metric 'Job requests' and limit '… per minute per region'.")
NO_QUOTA = refusal(429, "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_cpus")
NEW = refusal(400, "Service agents are being provisioned (https://…). Please try again in a few minutes.")
OFF = refusal(403, "Vertex AI API has not been used in project 1 before or it is disabled.")
REFUSED = refusal(400, "List of found errors: …")


def test_a_project_s_own_state_is_asked_past() -> None:
    (probe,) = probes.load(["bad-label"])
    asked, session = side(TOO_MANY, NEW, OFF, REFUSED)
    assert [each.body for each in asked.answers(probe)] == [REFUSED[1]]
    assert len(session.calls) == 4


def test_a_project_s_own_state_that_stays_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    (probe,) = probes.load(["bad-label"])
    monkeypatch.setattr("vertex_training.parity.side._OWN_STATE_SECONDS", -1)
    for answer, said in ((TOO_MANY, "it has too many requests"), (NEW, "the service agent is being created")):
        asked, _ = side(answer)
        with pytest.raises(ParityFailed, match=said):
            asked.answers(probe)


def test_a_quota_is_an_answer_where_it_is_asked_for() -> None:
    (about_quota, other) = probes.load(["quota"]) + probes.load(["bad-label"])
    asked, _ = side(NO_QUOTA)
    assert asked.answers(about_quota)[0].status == 429
    asked, _ = side(NO_QUOTA)
    with pytest.raises(ParityFailed, match=r"too little quota .*, after 1 of 1 calls"):
        asked.answers(other)


def test_answers_count_though_a_job_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    (probe,) = probes.load(["unknown-field"])
    name = f"projects/{RUN.project}/locations/{RUN.region}/customJobs/2"
    asked, _ = side((200, {"name": name}), (403, {}))
    assert asked.answers(replace(probe, steps=probe.steps[:1]))[0].body == {"name": name}


def test_a_run_that_was_cut_says_so() -> None:
    done, cut = (report.Finding(ALL[0]), report.Finding(ALL[1], failure=report.CUT))
    assert "**The run was cut**" in report.to_markdown([done, cut])
    assert json.loads(report.to_json([done, cut]))["cut"] is True
    assert "cut" not in report.to_markdown([done]) + report.to_json([done])


def test_a_token_that_ends_is_one_line() -> None:
    asked, _ = side(RefreshError("('invalid_grant: expired', {})"))  # type: ignore[no-untyped-call]
    with pytest.raises(ParityFailed, match=r"^service: [^\n]+$"):
        asked.check()


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


def test_parity_writes_through_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (mine := tmp_path / "mine").write_text("canary")
    (checkout := tmp_path / "checkout" / ".git").mkdir(parents=True)
    monkeypatch.chdir(checkout.parent)
    probe = ALL[0]
    for name in ("journal.new", f"{probe.name}.json"):
        Path(name).symlink_to(mine)
    Journal(Path("journal")).add(RUN)
    with pytest.raises(ParityFailed, match="leads out of checkout/ by a link"):
        report.save(Path.cwd(), probe, [])
    assert mine.read_text() == "canary" and not Path("journal").is_symlink()


def test_a_journal_keeps_the_runs_that_are_not_clean(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.add(RUN)
    assert journal.runs() == [RUN]
    journal.remove(RUN)
    assert [*tmp_path.iterdir()] == []
    journal.file.write_text("not a journal\n")
    with pytest.raises(ParityFailed, match="is no journal of parity"):
        journal.runs()


def test_clean_ends_an_emulator_that_is_being_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    Journal(command.JOURNAL).add(replace(RUN, service=None, emulator=str(folder)))
    sleeping = [sys.executable, "-c", "input()", "-m", "vertex_emulator", "serve", "--data", str(folder)]
    with subprocess.Popen(sleeping, stdin=subprocess.PIPE) as process:
        assert command.clean() == 0
        assert process.wait() == -signal.SIGKILL
    assert [*tmp_path.iterdir()] == []


def test_captured_answers_of_an_older_probe_are_refused(tmp_path: Path) -> None:
    (probe,) = probes.load(["success"])
    report.save(tmp_path, probe, answers({"a": 1}, ("PENDING",)))
    assert report.read(tmp_path, probe) == answers({"a": 1}, ("PENDING",))
    report.save(tmp_path, probe, answers({})[:1])
    with pytest.raises(ParityFailed, match="is of an older probe"):
        report.read(tmp_path, probe)
