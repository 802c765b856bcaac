"""A program at a terminal: what it asks, and someone who answers."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x1b]*\x1b\\")
_PROMPT = re.compile(r"([^\r\n]+): +$")
"""A question, with its default in brackets if it has one, and the cursor behind it."""
_QUERIES = {b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\", b"\x1b[6n": b"\x1b[1;1R"}
"""What a program asks the terminal itself (its colour, where the cursor is), and an answer."""


def talk(
    command: list[str], answers: Mapping[str, str], *, cwd: Path, environment: Mapping[str, str], limit: float = 60
) -> tuple[list[str], str]:
    """Runs a command, and answers each question whose text holds a key of `answers`.

    Returns the questions in their order and all that was printed. Fails when a question has no answer, when the command
    fails, or after `limit` seconds.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, cwd=cwd, env=dict(environment), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    questions: list[str] = []
    printed, seen, deadline = "", 0, time.monotonic() + limit
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.3)[0]:
                # It is silent: what stands at the end is a question, if there is anything.
                asked = _PROMPT.search(_CONTROL.sub("", printed[seen:]).rstrip("\r"))
                if asked:
                    questions.append(asked[1])
                    os.write(ours, _answer(asked[1], answers).encode() + b"\r")
                    seen = len(printed)
                continue
            try:
                read = os.read(ours, 65536)
            except OSError:  # the end of a terminal
                break
            printed += read.decode(errors="replace")
            for query, answer in _QUERIES.items():
                if query in read:
                    os.write(ours, answer)
        assert time.monotonic() < deadline, printed
        assert process.wait(timeout=10) == 0, printed
        return questions, _CONTROL.sub("", printed)
    finally:
        os.close(ours)
        process.kill()
        process.wait()


def _answer(question: str, answers: Mapping[str, str]) -> str:
    found = [answer for key, answer in answers.items() if key in question]
    assert len(found) == 1, f"the question {question!r} has {len(found)} answers"
    return found[0]
