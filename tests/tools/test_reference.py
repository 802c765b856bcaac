"""The pages of reference: as generated, with every public name, every argument and every option, each described."""

import argparse
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import griffe
import pytest
import vertex_training
from vertex_training import cli

from tools import reference
from vertex_emulator.cli import options

ENTRIES = {each.path: each for _, entries in reference.SECTIONS.values() for each in entries}


@cache
def read() -> reference.Reference:
    return reference.Reference()


def test_the_pages_are_what_the_generator_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["reference", "--check"])
    known = read()
    monkeypatch.setattr(reference, "Reference", lambda: known)
    assert reference.main() == 0


def test_the_page_has_every_public_name() -> None:
    assert {f"vertex_training.{name}" for name in vertex_training.__all__} <= ENTRIES.keys()
    fixtures = re.findall(r"^@pytest.fixture\ndef (\w+)", _plugin(), re.MULTILINE)
    assert {f"vertex_emulator.testing.pytest_plugin.{name}" for name in fixtures} <= ENTRIES.keys()


def _plugin() -> str:
    folder = Path(reference.__file__).parents[1] / "vertex_emulator" / "testing"
    return (folder / "pytest_plugin.py").read_text()


def described(path: str) -> Iterator[tuple[str, griffe.Object]]:
    """What a docstring describes on the page: the name, and its attributes and methods."""
    yield path, read().find(path)
    for members in read().members(ENTRIES[path]).values():
        yield from members.items()


@pytest.mark.parametrize("path", ENTRIES)
def test_a_name_says_in_one_sentence_what_it_is(path: str) -> None:
    for name, found in described(path):
        assert found.docstring, name
        first, *rest = found.docstring.value.splitlines()
        assert re.match(r"[A-Z`].*[.]$", first), f"{name}: {first}"
        assert not rest or rest[0] == "", f"{name}: a blank line ends the first sentence"


@pytest.mark.parametrize("parser", [cli.build(), options.build()], ids=lambda parser: parser.prog)
def test_every_argument_of_a_command_is_described(parser: argparse.ArgumentParser) -> None:
    page = (reference.DOCS / "commands.md").read_text()
    found = [*arguments(parser)]
    assert len(found) > 40
    for command, action in found:
        section = page.partition(f"# {command}\n")[2].partition("\n##")[0]
        for name in action.option_strings or [str(action.metavar or "|".join(action.choices or ()))]:
            assert re.search(rf"^\|.*`{re.escape(name)}[ `].*\| \S", section.replace("\\|", "|"), re.MULTILINE), (
                command,
                name,
            )


def arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Each argument that a command has, with the command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from arguments(each)
        elif not isinstance(action, argparse._HelpAction):
            yield parser.prog, action
