"""Set up this checkout, or print the shell environment to use it in.

python3 -m tools.setup [STEP ...]    what a user needs: python, commands, pulumi, docker, image; or only the given steps
python3 -m tools.setup test          what only tests need: Debian's packages, if this user may install them
python3 -m tools.setup env           shell code for `eval`, after the steps that it depends on
"""

import argparse
import fcntl
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from tools.setup import (
    base_image,
    console_scripts,
    docker_daemon,
    programs_for_tests,
    pulumi_engine,
    python_environment,
    shell_environment,
)
from tools.setup.console import Console
from tools.setup.errors import SetupError
from tools.setup.folders import cache_folder


class Step(Protocol):
    """A module that sets up one thing, and says in one line what it found or did."""

    def find(self) -> str | None:
        """What is in place already; None when something is missing."""

    def make(self, console: Console) -> str:
        """Bring it about. Raises SetupError."""


STEPS: dict[str, Step] = {
    "python": python_environment,
    "commands": console_scripts,
    "pulumi": pulumi_engine,
    "docker": docker_daemon,
    "image": base_image,
    "test": programs_for_tests,
}
USER_STEPS = ("python", "commands", "pulumi", "docker", "image")
ENV = "env"
ENV_STEPS = ("python", "commands", "pulumi")


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tools.setup", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", metavar="STEP")
    what = parser.parse_args(arguments).what
    if what != [ENV] and not set(what) <= STEPS.keys():
        parser.error(f"the steps are {', '.join(STEPS)}; {ENV} stands alone")
    try:
        if what == [ENV]:
            set_up(ENV_STEPS, Console(sys.stderr), tell_found=False)
            print(shell_environment.exports(), end="")
        else:
            set_up(what or USER_STEPS, Console(sys.stdout), tell_found=True)
    except (SetupError, OSError) as error:  # an OSError names the file: a full disk, a folder of another user
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. `make setup` goes on where it is needed.", file=sys.stderr)
        return 130
    return 0


def set_up(names: Sequence[str], console: Console, tell_found: bool) -> None:
    """Do the named steps in their order. Raises SetupError."""
    for step in (STEPS[name] for name in names):
        line = step.find()
        if line is not None:
            if tell_found:
                console.line(line)
            continue
        with the_only_one(console):
            console.line(step.find() or step.make(console))


@contextmanager
def the_only_one(console: Console) -> Iterator[None]:
    """Keeps two set-ups (of two terminals, or `make -j`) from installing into the same folders."""
    progress = console.progress("waiting for another set-up")
    started = time.monotonic()
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "setup.lock").open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress(time.monotonic() - started)
                time.sleep(0.2)
            else:
                break
        yield


if __name__ == "__main__":
    # Ending this program must end the programs it runs, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
