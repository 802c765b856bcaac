"""A program at a terminal: what it asks, and someone who answers."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x1b]*\x1b\\")
_PROMPT = re.compile(r"([^\r\n]+): +$")
"""A question, with its default in brackets if it has one, and the cursor behind it."""
_QUERIES = {b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\", b"\x1b[6n": b"\x1b[1;1R"}
"""What a program asks the terminal itself (its colour, where the cursor is), and an answer."""

# A program gets the terminal's signals once its session has the terminal; `nohup` ignores one of them.
_TAKE_TERMINAL = (
    "import fcntl, os, signal, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)


class ProgramAtTerminal:
    """A program with a terminal of its own, whose keys are pressed here; `printed` is what it has shown so far."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *command],
            env=dict(environment),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self._is_open = True
        self.printed = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self.close()

    def read_until(self, text: str, limit: float = 60) -> None:
        """Read until a text is shown, fail after `limit` seconds."""
        deadline = time.monotonic() + limit
        while text not in self.printed:
            assert self._read_some(deadline - time.monotonic()), self.printed

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def close(self) -> None:
        """Close the window, which hangs the program up."""
        if self._is_open:
            os.close(self._ours)
        self._is_open = False

    def wait(self, limit: float = 60) -> int:
        """Read what is shown until the program's end; its exit code."""
        deadline = time.monotonic() + limit
        while self._is_open and self._read_some(deadline - time.monotonic()):
            pass
        return self._process.wait(max(0, deadline - time.monotonic()))

    def _read_some(self, seconds: float) -> bool:
        if not select.select([self._ours], [], [], max(0, seconds))[0]:
            return False
        try:
            self.printed += os.read(self._ours, 65536).decode(errors="replace")
        except OSError:  # the end of a terminal
            return False
        return True


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
        assert process.wait(timeout=limit) == 0, printed
        return questions, _CONTROL.sub("", printed)
    finally:
        os.close(ours)
        process.kill()
        process.wait()


def _answer(question: str, answers: Mapping[str, str]) -> str:
    found = [answer for key, answer in answers.items() if key in question]
    assert len(found) == 1, f"the question {question!r} has {len(found)} answers"
    return found[0]
