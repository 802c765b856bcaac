"""Debug messages: which `pulumi` commands ask for them, and how the command is found."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import vertex_training
from pulumi import log
from vertex_training.runtime import pulumi_debug_message_silencing

PRINT_ARGUMENTS = """
import os
from vertex_training.runtime import pulumi_debug_message_silencing
if {hide_proc}:
    pulumi_debug_message_silencing.Path.is_dir = lambda path: False
print(pulumi_debug_message_silencing.find_pulumi_ancestor_arguments_or_none(os.getppid()))
"""


@pytest.mark.parametrize("options", ["--debug", "-d", "--debug=true", "-yd", "-v=9", "-v9", "--verbose 3", "-dy"])
def test_these_options_request_debug_output(options: str) -> None:
    assert pulumi_debug_message_silencing.has_debug_option(["up", "--yes", *options.split()])


@pytest.mark.parametrize("options", ["", "--diff", "-y -s dev", "--event-log FILE", "--logtostderr", "-m verbose"])
def test_other_options_do_not(options: str) -> None:
    assert not pulumi_debug_message_silencing.has_debug_option(["up", *options.split()])


@pytest.mark.parametrize("hide_proc", [False, True])
def test_the_engine_is_found_through_processes_between(tmp_path: Path, hide_proc: bool) -> None:
    engine, program = tmp_path / "pulumi", tmp_path / "program.py"
    engine.symlink_to(shutil.which("sh") or "/bin/sh")
    program.write_text(PRINT_ARGUMENTS.format(hide_proc=hide_proc))
    # `true` keeps each shell from making way for its last command.
    host = f"sh -c '\"$0\" \"$1\"; true' '{sys.executable}' '{program}'; true"
    environment = {**os.environ, "PYTHONPATH": str(Path(vertex_training.__path__[0]).parent)}
    command = [engine, "-c", host, "preview", "--debug"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("'preview', '--debug']")


def test_without_an_engine_messages_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "debug", sent := log.debug)
    monkeypatch.setattr(pulumi_debug_message_silencing, "find_pulumi_ancestor_arguments_or_none", lambda _pid: None)
    pulumi_debug_message_silencing.drop_sdk_debug_messages_unless_requested()
    assert log.debug is sent


def test_an_engine_that_drops_messages_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "debug", sent := log.debug)
    monkeypatch.setattr(
        pulumi_debug_message_silencing, "find_pulumi_ancestor_arguments_or_none", lambda _pid: ["preview"]
    )
    pulumi_debug_message_silencing.drop_sdk_debug_messages_unless_requested()
    assert log.debug is not sent
    log.debug("nobody reads this", ephemeral=True)
