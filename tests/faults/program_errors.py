"""Errors of a program at each place where one can raise, by Pulumi's engine and three SDKs: the state stays whole.

    python -m tests.faults.program_errors
    python -m tests.faults.program_errors --sdk 3.259.0 --all

After each `up` that fails, the state can be imported as it is, and nothing is in it that should not be; after each
few, a preview and an `up` of the mended program work. By default each place and each error once; `--all` is each error
at each place. No Docker is needed: nothing runs. The exit code is 1 when something is wrong.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path

from tests.components.runtime.test_program_errors import CASES, ERRORS, PLACES
from tests.engine import preloaded_python
from tests.engine.project import CHECKOUT, Project
from tests.faults.command import verdict
from tests.standins import training
from tools.setup.sdks import SHA256, folder_of

OWN_SDK = version("pulumi")
SDKS = (*SHA256, OWN_SDK)
SHOWN = {
    "KeyError": "KeyError: 'nosuchkey'",
    "TypeError": "TypeError: unsupported operand",
    "AssertionError": "of the program",
    "surrogates": "surrogates not allowed",
    "RunError": "of the program",
}
"""What of an error a user reads; the others end with Ctrl-C."""
_HANGING_SECONDS = 15.0
_MOST_SECONDS = 240.0
_PROGRAM = """\
import asyncio

from tests.components.runtime.test_program_errors import ERRORS, program


def cancelled(_):
    raise asyncio.CancelledError


def never(_):
    return asyncio.get_running_loop().create_future()


place, error = {place!r}, {error!r}
fail = {{"never": never, "CancelledError": cancelled}}.get(error) or ERRORS[error][1]
program(place, fail, lambda: None)()
"""
_MENDED = """\
from tests.components.runtime.test_program_errors import job

first = job("a", None)
job("b", None, first.run["name"])
job("refused", None)
"""


def some_cases() -> list[tuple[str, str]]:
    """Return pairs of a place and an error, such that each place and each error is there."""
    return [
        (place, error) if (place, error) in CASES else (place, "KeyError")
        for place, error in zip_longest(PLACES, ERRORS, fillvalue="KeyError")
    ]


class Table:
    """A project whose programs fail with an SDK. `server` stands in for the emulator."""

    def __init__(self, project: Project, sdk: str) -> None:
        self._project, self._sdk, self._seconds = project, sdk, _MOST_SECONDS
        folders = [str(CHECKOUT)]
        if sdk != OWN_SDK:
            project.environment = preloaded_python.remove_variables(project.environment)
            folders = [str(folder_of(sdk)), *folders]
        project.environment["PYTHONPATH"] = ":".join([*folders, project.environment["PYTHONPATH"]])
        del project.stack["vertex-training:include"]
        project.declare()
        (project.root / "Dockerfile").write_text("FROM scratch\n")
        (project.root / "train.py").touch()

    def run(self, cases: Iterable[tuple[str, str]], verbs: Sequence[str]) -> Iterator[str]:
        """Run each case by each verb, and the mended program; yield what is wrong."""
        self._write(_MENDED)
        yield from self._mended("before all", ["up", "--yes", "--skip-preview"])
        for place, error in cases:
            self._write(_PROGRAM.format(place=place, error=error))
            self._seconds = _MOST_SECONDS if error in SHOWN else _HANGING_SECONDS
            for verb in verbs:
                yield from (f"{place}, {error}, {verb}: {each}" for each in self._failing(verb, error))
            print(f"{self._sdk}: {place}, {error}", flush=True)
        self._write(_MENDED)
        self._seconds = _MOST_SECONDS
        checks = ["preview"], ["up", "--yes", "--skip-preview"], ["preview", "--expect-no-changes"]
        yield from self._mended("after all", *checks)

    def _write(self, program: str) -> None:
        version = f"import pulumi\nassert {str(folder_of(self._sdk))!r} in pulumi.__file__\n"
        (self._project.root / "__main__.py").write_text((version if self._sdk != OWN_SDK else "") + program)

    def _failing(self, verb: str, error: str) -> Iterator[str]:
        options = ["--yes", "--skip-preview", "--continue-on-error"] if verb == "up" else []
        code, output = self._pulumi(verb, *options)
        if code == 0 or SHOWN.get(error, "") not in output:
            yield f"ends with {code}: {output[-1500:]}"
        if verb == "up":
            code, output = self._pulumi("stack", "import", "--file", str(self._project.export()))
            if code:
                yield f"stack import: {output[-1500:]}"
        if left := self._project.resources().keys() & {"behind", "uses"}:
            yield f"the state has {sorted(left)}"

    def _mended(self, when: str, *commands: list[str]) -> Iterator[str]:
        for command in commands:
            code, output = self._pulumi(*command)
            if code:
                yield f"{when}, {command[0]}: {output[-1500:]}"

    def _pulumi(self, *arguments: str) -> tuple[int, str]:
        """Run `pulumi`, and interrupt it if its program waits without an end."""
        process = self._project._start_pulumi([*arguments, "--stack", self._project.name], self._project.environment)
        try:
            output, _ = process.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=_MOST_SECONDS)
        return process.returncode, output


def check(sdk: str, cases: Sequence[tuple[str, str]], verbs: Sequence[str] = ("preview", "up")) -> list[str]:
    """Run cases with an SDK; return what is wrong."""
    folder = Path(tempfile.mkdtemp(prefix="vertex-program-errors-"))
    project = Project(folder)
    with training.serve(project.data) as server:
        server.other_state = "SUCCEEDED"
        wrong = [f"{sdk}: {each}" for each in Table(project, sdk).run(cases, verbs)]
    shutil.rmtree(folder)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.faults.program_errors", description=__doc__.splitlines()[0])
    parser.add_argument("--sdk", action="append", choices=SDKS, help="one of them; by default all")
    parser.add_argument("--all", action="store_true", help="each error at each place")
    options = parser.parse_args()
    cases = CASES if options.all else some_cases()
    wrong = [line for sdk in options.sdk or SDKS for line in check(sdk, cases)]
    return verdict(wrong, f"{len(cases)} cases with each SDK: errors are shown, states are whole")


if __name__ == "__main__":
    sys.exit(main())
