"""Files from strangers, for every command that reads one: a line each that says what is wrong, in time, and no more."""

import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from vertex_training.cli import main
from vertex_training.data import lock
from vertex_training.data.lock import Data
from vertex_training.errors import DataLockUnusable, Problem
from vertex_training.schema import source
from vertex_training.schema.source import SourceFile

from tests.cases import case
from tests.components.review.recorded_previews import HERE

PREVIEW = str(HERE / "recorded" / "code-edit.json")
COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "review": lambda file: ["review", file],
    "review --rehearsal": lambda file: ["review", PREVIEW, "--rehearsal", file],
    "check-plan": lambda file: ["check-plan", file, PREVIEW],
    "convert-legacy": lambda file: ["convert-legacy", file],
    "rehearse": lambda file: ["rehearse", file],
    "rehearse --against": lambda file: ["rehearse", PREVIEW, "--against", file],
}
NINE = ",".join(["*{}"] * 9)
BOMB = "a: &a [" + ",".join(["x"] * 9) + "]\n"
BOMB += "".join(f"{name}: &{name} [{NINE.replace('{}', before)}]\n" for before, name in pairwise("abcdefghi"))


def preview(**changed: Any) -> bytes:
    return json.dumps(json.loads(Path(PREVIEW).read_text()) | changed).encode()


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "NUL": b"\0" * 1000,
    "UTF-16": "trainingInput: 1".encode("utf-16"),
    "no UTF-8": b"\xff\xfe\xfa",
    "a zip": b"PK\x03\x04" + b"\0" * 100,
    "terminal codes": b"\x1b[2J: \x1b]0;owned\x07\n",
    "escaped terminal codes": b'"\\u001b[2J\\u202e": "\\u001b]0;owned\\u0007"',
    "JSON without end": b'{"a":' * 100_000,
    "lists without end": b"[" * 100_000,
    "mappings in mappings": b"{" * 2000 + b"}" * 2000,
    "a bomb of aliases": BOMB.encode(),
    "an alias of itself": b"&a [*a]",
    "a merge of itself": b"a: &a {<<: *a}",
    "keys twice": b'{"steps": [], "steps": [7], "trainingInput": {}, "trainingInput": {}}',
    "a key that is a list": b"? [1, 2]\n: 3\n",
    "a tag that runs": b"!!python/object/apply:os.system ['touch owned']",
    "NaN": b'{"trainingInput": {"hyperparameters": {"maxTrials": NaN}}, "steps": NaN, "version": NaN}',
    "infinite numbers": b'{"trainingInput": {"region": 1e999}, "steps": Infinity, "version": -Infinity}',
    "a number of 10,000 digits": b'{"version": ' + b"9" * 10_000 + b"}",
    "a hexadecimal number of 10,000 digits": b"trainingInput: {args: [0x" + b"f" * 10_000 + b"]}",
    "a number of 300,000 parts": b"trainingInput: {scheduling: {maxRunningTime: " + b"1:" * 300_000 + b"1}}",
    "a float of 300 parts": b"trainingInput: " + b"1:" * 300 + b"1.5",
    "half a character": b'{"steps": [{"urn": "\\ud800"}], "trainingInput": "\\ud800", "version": "\\ud800"}',
    "steps that are no steps": preview(steps=[{"op": "create", "urn": "\x1b[2J::a::b::c", "newState": 7}]),
    "a preview of other types": preview(steps={"a": 1}, diagnostics="x", duration=[]),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_files_end_in_short_lines(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (tmp_path / "Pulumi.local.yaml").write_text("config:\n  vertex-training:target: local\n")
    file = tmp_path / "given"
    for name, content in HOSTILE.items():
        file.write_bytes(content)
        before, began = {*tmp_path.iterdir()}, time.process_time()
        with case(name):
            assert main(COMMANDS[command](str(file))) in (1, 2)
            assert time.process_time() - began < 5
            shown = capsys.readouterr()
            assert shown.out == "" and shown.err
            for line in shown.err.splitlines():
                assert line.isprintable() and len(line) < 1000
            assert "Traceback" not in shown.err and {*tmp_path.iterdir()} == before


def data_lock(heading: str, *lines: str) -> bytes:
    return "\n".join(['{"dataLock": 1}', '{"stack": "dev", "data": "train", ' + heading + "}", *lines, ""]).encode()


LOCKS = HOSTILE | {
    "a heading of other types": data_lock('"uri": 7, "objects": [], "bytes": {}'),
    "infinite bytes": data_lock('"uri": "gs://b/x", "objects": Infinity, "bytes": NaN, "digest": "0"'),
    "terminal codes in an object": data_lock(
        '"uri": "gs://b/x", "objects": 1, "bytes": 1, "digest": "\\u001b[2J"', '{"name": "\\u001b[2J", "size": "x"}'
    ),
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_hostile_lock_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "data.lock").write_bytes(LOCKS[name])
    declared = Data("train", "gs://b/x", "error", lambda path, message: Problem("p", str(path), message))
    try:
        found = lock.resolve(tmp_path, "dev", {"train": declared})
    except DataLockUnusable as error:
        assert str(error).isprintable() and len(str(error)) < 1000
    else:
        assert found["train"].summary is None


def test_names_in_previews_are_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(Path(PREVIEW).read_text())
    for step in found["steps"]:
        step["urn"] += "\x1b[2J|`<img src=x onerror=alert(1)>\u202e\n# owned"
    found |= {"duration": float("nan")}
    file = tmp_path / "preview.json"
    file.write_text(json.dumps(found))
    assert main(["review", str(file)]) == 0
    shown = capsys.readouterr().out
    assert all(line.isprintable() for line in shown.splitlines())
    assert "<img" not in shown.replace("`<img", "") and "\n# owned" not in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_files_without_end_fill_no_memory(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Devices have no size that would say so."""
    assert main(COMMANDS[command]("/dev/zero")) in (1, 2)
    assert capsys.readouterr().err.count("\n") == 1


def test_a_declaration_has_a_most_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 1 << 20)
    file = tmp_path / "jobs.yaml"
    file.write_bytes(b"a: 1\n" + b"#" * (1 << 20))
    for root in (None, tmp_path):
        _, _, (problem,) = SourceFile.read(file, "jobs.yaml", root)
        assert "has more than 1 MiB" in str(problem)


@pytest.mark.parametrize(
    ("text", "value"), [("1:30", 90), ("0x1f", 31), ("1.5", 1.5), ("9" * 300, int("9" * 300)), ("1:30.5", 90.5)]
)
def test_numbers_of_people_are_read(text: str, value: float) -> None:
    assert SourceFile("f", f"a: {text}".encode()).parse() == ({"a": value}, [])
