"""The generated messages: what the generator writes, and the same fields as Google's own client knows."""

import sys
import typing
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tools import discovery
from vertex_api import types
from vertex_api.names import KINDS, TRAINING_PIPELINE, Kind
from vertex_api.validation.model import ONEOFS

# Within deployedModels, which the service sets: this version of the client leaves it out of what it reads.
NOT_IN_THE_CLIENT = {"DeployedModelRef.checkpointId"}


def check(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["discovery", "--check"])
    return discovery.main()


def test_a_file_edited_by_hand_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = tmp_path / "types.py"
    edited.write_text(Path(types.__file__).read_text().replace("replicaCount: Int64", "replicaCount: Int32"))
    monkeypatch.setattr(discovery, "TYPES", edited)
    assert check(monkeypatch) == 1
    assert capsys.readouterr().err == f"{edited} is out of date: run python -m tools.discovery\n"


def fields_that_differ(name: str, descriptor: Any, seen: set[str]) -> Iterator[str]:
    ours = typing.get_type_hints(getattr(types, name), include_extras=True)
    theirs = {field.json_name: field.message_type for field in descriptor.fields}
    yield from (f"{name}.{field}" for field in ours.keys() ^ theirs.keys())
    for message in theirs.values():
        if message and message.full_name not in seen and not message.GetOptions().map_entry:
            seen.add(message.full_name)
            package, _, nested = message.full_name.partition(".v1.")
            if package == "google.cloud.aiplatform":
                yield from fields_that_differ(nested.replace(".", ""), message, seen)


def unions_below(descriptor: Any, seen: set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each oneof of a message and of those below it, by the message's name here."""
    seen.add(descriptor.full_name)
    for union in descriptor.oneofs:
        if len(union.fields) > 1:  # the others are optional fields
            name = descriptor.full_name.partition(".v1.")[2].replace(".", "")
            yield name, tuple(field.json_name for field in union.fields)
    for field in descriptor.fields:
        below = field.message_type
        if below and below.full_name not in seen and below.full_name.startswith("google.cloud."):
            yield from unions_below(below, seen)


@pytest.fixture(scope="module")
def aiplatform_v1() -> ModuleType:
    """Google's own client, imported here because that takes a second, in each process that collects tests."""
    return import_module("google.cloud.aiplatform_v1")


def test_model_unions_match_google_s_client(aiplatform_v1: ModuleType) -> None:
    assert dict(unions_below(aiplatform_v1.Model.pb(aiplatform_v1.Model()).DESCRIPTOR, set())) == ONEOFS


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_google_s_client_has_every_field(aiplatform_v1: ModuleType, kind: Kind) -> None:
    # Else a declaration that passes validation could not be submitted, or what is read back not be understood.
    message = getattr(aiplatform_v1, kind.type)
    seen: set[str] = set()
    assert {*fields_that_differ(kind.type, message.pb(message()).DESCRIPTOR, seen)} <= NOT_IN_THE_CLIENT
    expected = "Model" if kind == TRAINING_PIPELINE else "ContainerSpec"
    assert f"google.cloud.aiplatform.v1.{expected}" in seen
