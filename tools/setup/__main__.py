"""Set up this checkout, or print the shell environment to use it in.

python3 -m tools.setup [STEP ...]    what a user needs: python, commands, pulumi, docker, image; or only the given steps
python3 -m tools.setup python dev test sdks  what tests need beside: packages, Debian's too if allowed, two Pulumi SDKs
python3 -m tools.setup buildx        Docker's buildx: images whose Dockerfile needs BuildKit run this themselves
python3 -m tools.setup env           shell code for `eval`, after the steps that it depends on
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Protocol

from tools.setup import (
    CHECKOUT,
    buildx,
    cache_folder,
    commands,
    dev,
    docker,
    engine,
    exports,
    image,
    is_own,
    programs,
    python,
    sdks,
    testing,
)
from tools.setup.programs import Output, SetupError
from vertex_api import locks


class Step(Protocol):
    """A module that sets up one thing. Both functions return one line of text about it.

    It may have a third function, `prepare(output)`, which does what it can while the steps before it run.
    """

    def find(self) -> str | None:
        """Describe what is installed; return `None` if something is missing."""

    def make(self, output: Output) -> str:
        """Install what is missing. Raises SetupError."""


STEPS: dict[str, Step] = {
    "python": python,
    "dev": dev,
    "commands": commands,
    "pulumi": engine,
    "docker": docker,
    "image": image,
    "test": testing,
    "sdks": sdks,
    "buildx": buildx,
}
LANES = (("python", "dev", "commands", "pulumi", "sdks", "buildx"), ("docker", "image", "test"))
"""Each step needs those before it in its lane. One lane mostly computes, the other mostly waits: both run at once."""
USER_STEPS = ("python", "commands", "pulumi", "docker", "image")
ENV = "env"
ENV_STEPS = ("python", "commands", "pulumi")


def main(arguments: Sequence[str]) -> int:
    """Run the steps that the command line names, and return the exit code."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python3 -m tools.setup", description=__doc__, formatter_class=formatter)
    parser.add_argument("names", nargs="*", metavar="STEP")
    names = parser.parse_args(arguments).names
    if names != [ENV] and not set(names) <= STEPS.keys():
        parser.error(f"the steps are {', '.join(STEPS)}; {ENV} stands alone")
    try:
        if names == [ENV]:
            run_steps(ENV_STEPS, Output(sys.stderr), report_found=False)
            print(exports.render(), end="")
        else:
            run_steps(names or USER_STEPS, Output(sys.stdout), report_found=True)
    except (SetupError, OSError) as error:  # an OSError names the file: a full disk, a folder of another user
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Run `make setup` again to do the rest.", file=sys.stderr)
        return 130
    return 0


def run_steps(names: Sequence[str], output: Output, report_found: bool) -> None:
    """Run the steps, both lanes at once; `report_found` also prints what needs no work. Raises SetupError.

    When a step fails or is interrupted, the other lane's step is ended too.
    """
    missing = []
    for lane in LANES:
        wanted = [name for name in lane if name in names]
        # A step is looked for only once those before it are there: they may take away what it has made.
        while wanted and (line := STEPS[wanted[0]].find()):
            del wanted[0]
            if report_found:
                output.say(line)
        missing += [wanted] if wanted else []
    if not missing:
        return
    with lock(output), programs.interruptible() as interrupt, ThreadPoolExecutor() as threads:
        running = [threads.submit(_run_lane, lane, output, report_found) for lane in missing]
        running += [threads.submit(each, output) for each in _preparations(missing)]
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            # Of no effect once all have ended.
            interrupt()
    reasons = [error for error in (each.exception() for each in running) if error]
    told = [error for error in reasons if not isinstance(error, programs.Interrupted)]
    if len(told) > 1 and all(isinstance(error, SetupError) for error in told):
        raise SetupError("\n".join(map(str, told)))
    for error in told:
        raise error


def _preparations(lanes: Sequence[Sequence[str]]) -> list[Callable[[Output], None]]:
    return [step.prepare for lane in lanes for name in lane[1:] if hasattr(step := STEPS[name], "prepare")]


def _run_lane(names: Sequence[str], output: Output, report_found: bool) -> None:
    for name in names:
        if (line := STEPS[name].find()) is None:
            output.say(STEPS[name].make(output))
        elif report_found:
            output.say(line)


@contextmanager
def lock(output: Output) -> Iterator[None]:
    """Wait until no other set-up of this user (another terminal, `make -j`) writes to the same folders."""
    started = time.monotonic()
    folder = cache_folder()
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not is_own(folder):
        raise SetupError(f"{folder}: other users may write to it, and programs in it are started; remove it")
    show_progress: programs.Progress | None = None
    with (cache_folder() / "setup.lock").open("a+") as file:
        while not locks.try_take(file):
            file.seek(0)
            show_progress = show_progress or output.progress(f"waiting for another set-up, {file.read()}")
            show_progress(time.monotonic() - started)
            time.sleep(0.2)
        file.truncate(0)
        print(f"of process {os.getpid()} in {CHECKOUT}", end="", file=file, flush=True)
        yield


if __name__ == "__main__":
    # A terminated set-up also ends the programs that it runs.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
