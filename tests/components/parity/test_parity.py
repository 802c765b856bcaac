"""Runs against an emulator in the service's place: no difference, twenty seeded ones, and nothing that is left."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from vertex_training.parity import command

from tests.components.parity.test_probes import OPTIONS
from tests.forwarding_proxy import ForwardingProxy
from tests.vertex_emulator.running import RunningEmulator

PROJECT = "acme-canary"
PARENT = f"projects/{PROJECT}/locations/us-central1"
QUICK = [
    "bad-*",
    "no-*",
    "create-*",
    "list-*",
    "missing-*",
    "malformed-name",
    "unknown-*",
    "enums-as-numbers",
    "search-*s",
    "search-*range",
    "object*",
    "exit-3",
    "cancel-at-once",
    "environment",
]
Edit = Callable[[str], str]


def replaces(old: str, new: str) -> Edit:
    return lambda text: text.replace(old, new)


def changes(field: str, new: Any) -> Edit:
    def edit(text: str) -> str:
        answer = json.loads(text)
        target = answer.get("jobSpec", answer) if field not in answer else answer
        target.update({field: new}) if new is not None else target.pop(field, None)
        return json.dumps(answer)

    return edit


SEEDED: dict[str, tuple[str, str, str, Edit]] = {
    # Probe: what is called, its path in the answer, and how the answer is changed.
    "bad-machine-type": ("POST customJobs", "body.error.message", "n1-standard-5", replaces("n1-standard-5", "n9")),
    "bad-image": ("POST customJobs", "body.error.status", "not an image", replaces("INVALID_ARGUMENT", "NOT_FOUND")),
    "bad-network": ("POST customJobs", "body.error.code", "network", replaces('"code":400', '"code":409')),
    "bad-type": ("POST customJobs", "body.error.message", "many", replaces("List of found errors", "Errors found")),
    "bad-boot-disk": ("POST customJobs", "body.error.message", "pd-fast", replaces("pd-fast", "PD_FAST")),
    "bad-key": ("POST customJobs", "body.error.message", "my-key", replaces("my-key", "the key")),
    "bad-label": ("POST customJobs", "body.error.message", "Team", replaces("labels", "label")),
    "bad-timeout": ("POST customJobs", "body.error.message", "1h", replaces("timeout", "time_out")),
    "no-image": ("POST customJobs", "body.error.message", "image_uri", replaces("is required", "is missing")),
    "create-fields": ("POST customJobs", "body.jobSpec.enableWebAccess", '"vision"', changes("enableWebAccess", None)),
    "create-snake-case": ("POST customJobs", "body.jobSpec.satisfiesPzs", "-snake", changes("satisfiesPzs", False)),
    "enums-as-numbers": ("GET ${job}?alt=json;enum-encoding=int", "body.labels.parity_run", "-as-numbers",
                         changes("labels", {})),
    "exit-3": ("GET ${job}", "body.error.code", "status of 3", replaces('"code":3', '"code":13')),
    "cancel-at-once": ("GET ${job}", "body.error.message", "CANCELED", replaces("CANCELED", "Cancelled.")),
    "list-pages": ("GET customJobs?pageSize=5", "body.customJobs[1].labels.at", '"second"', replaces("first", "1st")),
    "list-by-label": ("GET customJobs?filter=labels.parity_list", "body.nextPageToken", "parity_list",
                      changes("nextPageToken", "more")),
    "environment": ("GET storage", "body.CLOUD_ML_REGION", "CLOUD_ML_REGION", replaces("us-central1", "us-central2")),
    "malformed-name": ("GET customJobs/not-a-number", "content type", "CustomJob resource name", lambda text: text),
    "missing-search": ("GET trainingPipelines", "status", "TrainingPipeline", lambda text: text),
    "objects": ("POST storage", "status", "precondition", lambda text: text),
}  # fmt: skip
HEADS: dict[str, tuple[str, Callable[[int, str], tuple[int, str]]]] = {
    "malformed-name": ("/customJobs/not-a-number", lambda status, _: (status, "text/html")),
    "missing-search": ("/trainingPipelines/1234567890123456789", lambda _, kind: (400, kind)),
    "objects": ("ifGenerationMatch=0", lambda status, kind: (409 if status == 412 else status, kind)),
}


class StandIn(ForwardingProxy):
    """An emulator in the place of Vertex AI, which answers differently in the ways that are `seeded`."""

    seeded = False
    kept = ""
    """A part of the paths of what cannot be deleted."""

    def edit_answer(self, method: str, path: str, content: bytes) -> bytes:
        text = content.decode()
        for probe, (call, _, sign, edit) in SEEDED.items() if self.seeded else ():
            if call.startswith(method) and sign in text and self._is_of(probe, call, path, text):
                text = edit(text)
        return text.encode()

    def _is_of(self, probe: str, call: str, path: str, text: str) -> bool:
        asked = call.partition("?")[2].partition("=")[2]
        if probe == "list-pages":
            return "pageSize=5" in path
        if probe == "list-by-label":
            return "filter=labels.parity_list" in path and "none" not in path
        return not asked or "enum-encoding" in path

    def edit_head(self, method: str, path: str, status: int, content_type: str) -> tuple[int, str]:
        if method == "DELETE" and self.kept and self.kept in path:
            return 403, content_type
        for sign, edit in HEADS.values() if self.seeded else ():
            if sign in path and (method == "POST" or "ifGen" not in sign):
                status, content_type = edit(status, content_type)
        return status, content_type


@pytest.fixture
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StandIn, str]]:
    emulator = RunningEmulator(tmp_path_factory.mktemp("service") / "data")
    proxy = StandIn(emulator.url)
    with proxy.serving() as url:
        yield proxy, url
    emulator.close()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))


def left(url: str, folder: Path) -> list[str]:
    """What a run has left in the service, and in the folder that it was run in."""
    jobs = [
        job["name"]
        for collection in ("customJobs", "hyperparameterTuningJobs", "models")
        for job in requests.get(f"{url}/v1/{PARENT}/{collection}").json().get(collection, [])
    ]
    buckets = requests.get(f"{url}/storage/v1/b?project={PROJECT}").json().get("items", [])
    files = [str(path) for path in (*folder.glob(".parity-journal"), *folder.glob("temporary/vertex-training-*"))]
    return [*jobs, *(bucket["name"] for bucket in buckets), *files]


def test_an_emulator_does_not_differ_from_itself(
    stand_in: tuple[StandIn, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, url = stand_in
    options = {**OPTIONS, "only": QUICK, "endpoint": url, "capture": tmp_path / "captured", "json": tmp_path / "r.json"}
    assert command.parity(command.Options(**options)) == 0, capsys.readouterr().out
    shown = capsys.readouterr().out
    assert re.search(r"^\d\d probes: (\d\d) agree, 0 differ, 0 were not asked\.$", shown, re.MULTILINE)
    assert left(url, tmp_path) == []
    written = "".join(file.read_text() for file in (tmp_path / "captured").iterdir())
    assert PROJECT not in shown + written + (tmp_path / "r.json").read_text()
    # What was captured serves in the service's place, without a project.
    again = {**OPTIONS, "project": "parity-emulator", "only": QUICK, "against": tmp_path / "captured"}
    assert command.parity(command.Options(**again)) == 0, capsys.readouterr().out


def test_each_seeded_difference_is_named_and_no_other(stand_in: tuple[StandIn, str], tmp_path: Path) -> None:
    proxy, url = stand_in
    proxy.seeded = True
    options = {**OPTIONS, "only": [*SEEDED, "no-pools", "search-twice-*"], "endpoint": url, "json": tmp_path / "r.json"}
    assert command.parity(command.Options(**options)) == 1
    found = {
        (probe["name"], difference["path"])
        for probe in json.loads((tmp_path / "r.json").read_text())["probes"]
        for difference in probe["differences"]
        if ".details[" not in difference["path"]  # they repeat what the message says
    }
    assert found == {(probe, path) for probe, (_, path, _, _) in SEEDED.items()}
    assert len(SEEDED) == 20
    assert left(url, tmp_path) == []


@contextmanager
def running(url: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run of the command whose jobs take a while."""
    arguments = ["--project", PROJECT, "--endpoint", url, "--yes", "--only", "success", "--only", "cancel-*"]
    with (folder / "report.md").open("w") as report:
        process = subprocess.Popen(
            [sys.executable, "-m", "vertex_training.cli", "parity", *arguments],
            env={**os.environ, "TMPDIR": str(folder / "temporary")},
            stdout=report,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_killed_run_leaves_nothing_after_clean(seed: int, stand_in: tuple[StandIn, str], tmp_path: Path) -> None:
    _, url = stand_in
    with running(url, tmp_path) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(random.Random(seed).uniform(0.5, 6))
        os.killpg(process.pid, signal.SIGKILL)
    assert command.clean() == 0
    assert left(url, tmp_path) == []


def test_a_stopped_run_leaves_nothing(stand_in: tuple[StandIn, str], tmp_path: Path) -> None:
    _, url = stand_in
    with running(url, tmp_path) as process:
        assert process.stderr
        for line in process.stderr:  # until one probe is done, and others are under way
            if re.match(r"[\w-]+: \d+ difference", line):
                break
        assert command.clean() == 1  # it is at work, so that nothing of it may be removed
        process.send_signal(signal.SIGINT)  # as SIGTERM: tests/components/test_errors.py
        told = process.stderr.read()
        assert process.wait() == 130, told
    assert "**The run was cut**" in (tmp_path / "report.md").read_text()
    assert "Traceback" not in told
    assert left(url, tmp_path) == []


def test_a_report_is_written_though_something_is_left(
    stand_in: tuple[StandIn, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proxy, url = stand_in
    proxy.kept = "/b/parity-"
    assert command.parity(command.Options(**{**OPTIONS, "only": ["bad-label"], "endpoint": url})) == 1
    shown = capsys.readouterr()
    assert "1 probe: 1 agrees, 0 differ, 0 were not asked." in shown.out
    assert "is not deleted (HTTP 403); `vertex-training parity --clean` removes what is left" in shown.err
    proxy.kept = ""
    assert command.clean() == 0
    assert left(url, tmp_path) == []
