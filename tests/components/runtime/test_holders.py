"""Holders: who has what, by the state that `pulumi stack export` shows and by what a run does itself."""

import json
import os
from pathlib import Path

import pytest
from vertex_training.runtime import engine, holders
from vertex_training.runtime.holders import Holders, State

JOB = "projects/p/locations/r/customJobs/1"
TYPE = "pulumi-python:dynamic/vertex-training:CustomJob"
OLD, NEW = (f"urn:pulumi:dev::team::{parent}{TYPE}::train" for parent in ("", "team:index:Squad$"))
RESOURCES = [
    {"urn": "urn:pulumi:dev::team::pulumi:pulumi:Stack::team-dev", "type": "pulumi:pulumi:Stack"},
    {"urn": OLD, "type": TYPE, "id": JOB, "outputs": {"found": True}},
    {"urn": NEW, "type": TYPE, "id": JOB, "delete": True},
]
PENDING = [
    {"type": kind, "resource": {"urn": NEW, "type": TYPE, "inputs": {"owner": kind}}}
    for kind in ("creating", "updating")
]
EXPORT = {"deployment": {"resources": RESOURCES, "pending_operations": PENDING}}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `pulumi` that exports the stack `dev`; the file has a line for each call."""
    monkeypatch.undo()
    (tmp_path / "export.json").write_text(json.dumps(EXPORT))
    command = tmp_path / "pulumi"
    command.write_text(
        f'#!/bin/sh\ncd "{tmp_path}"\necho "$@" >> calls\ncase "$*" in *dev*) cat export.json;; *) false; esac\n'
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(engine, "own_arguments", lambda: ["up"])
    return tmp_path / "calls"


def test_a_state_has_ids_and_interrupted_creates() -> None:
    state = State.parse(EXPORT["deployment"])
    inputs = {urn: ("CustomJob", {}) for urn in (OLD, NEW)}
    assert state == State({JOB: [OLD, NEW]}, {JOB}, inputs, [("CustomJob", {"owner": "creating"})])


def test_the_last_of_two_holders_is_the_last(asked: Path) -> None:
    run = Holders()
    assert run.release(OLD, JOB) == holders.Release(NEW, is_known=True)
    assert run.release(NEW, JOB).is_last
    assert asked.read_text().splitlines() == [
        "stack export --non-interactive",
        "stack export --non-interactive --stack dev",
    ]


def test_a_new_resource_comes_from_the_recorded_one(asked: Path) -> None:
    run, third = Holders(), OLD.replace("train", "third")
    assert run.moved_from(third, JOB) == "" and not asked.exists(), "all is new"
    run.see(OLD)
    assert [run.moved_from(urn, JOB) for urn in (third, OLD, NEW)] == [OLD, "", ""]
    assert run.moved_from(third, "another") == ""


def test_what_this_run_has_made_counts(asked: Path) -> None:
    run = Holders()
    run.take(third := OLD.replace("train", "third"), JOB)
    assert [run.release(urn, JOB).holder for urn in (OLD, NEW)] == [third, third]


def test_a_job_that_its_own_urn_took_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Holders, "own_state", lambda *_: State({JOB: [OLD]}))
    run = Holders()
    run.take(OLD, JOB)
    assert [run.release(OLD, JOB).is_last for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "is_last"),
    [(["destroy", "-y"], True), (["up"], False), (["destroy", "--target", OLD], False), (["destroy", "-t=x"], False)],
)
def test_a_whole_destroy_needs_no_state(
    asked: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], is_last: bool
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(engine, "own_arguments", lambda: arguments)
    assert Holders().release(OLD, JOB).is_last is is_last


@pytest.mark.parametrize("stack", ["--stack=acme/team/dev", "-s acme/team/dev"])
def test_the_stack_is_the_command_s_own(asked: Path, monkeypatch: pytest.MonkeyPatch, stack: str) -> None:
    monkeypatch.setattr(engine, "own_arguments", lambda: ["up", *stack.split()])
    assert Holders().own_state(OLD, JOB)
    assert asked.read_text() == "stack export --non-interactive --stack acme/team/dev\n"


def test_another_stack_s_state_is_not_believed(asked: Path) -> None:
    run = Holders()
    assert run.own_state(OLD.replace("team", "other")) is None
    assert run.own_state(OLD, "elsewhere") is None


def test_a_urn_is_shown_by_types_and_name() -> None:
    assert holders.tail(NEW) == "Squad$CustomJob::train"


def test_a_request_names_its_urn() -> None:
    class Request:
        urn = OLD

    def create(request: Request) -> str:
        return engine.requested_urn()

    assert (create(Request()), engine.requested_urn()) == (OLD, "")
