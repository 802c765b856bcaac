"""Kill `pulumi` and its processes at random moments of an `up` that changes the URNs of jobs, and look at the jobs.

    python -m tests.faults.urn_kills --kills 10 --seed 1

Each `up` moves some jobs into a component or out of it. Whatever is killed, no job is cancelled, deleted or submitted
again, and after the next `up` the state has each of them once. No Docker is needed: nothing runs. The exit code is 1
when a job was touched.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.engine.moving.project import KINDS, Moving, job, serve
from tests.faults.command import kills_parser, verdict
from tests.faults.engine_kills import PROVIDER, descendants
from tests.standins import training

_VICTIMS = ("engine", "provider", "all of them")
_SECONDS = 2.5
_MOST_SECONDS = 240.0


def kill(kills: int, seed: int) -> list[str]:
    """Kill so many times; what is wrong after that."""
    dice, wrong = random.Random(seed), []
    folder = Path(tempfile.mkdtemp(prefix="vertex-urn-kills-"))
    rows = [job(f"{kind}-{state}", kind, state) for kind in KINDS for state in training.STATES]
    with serve(folder) as moving:
        server = moving.server
        moving.lay(*rows, schedules={"nightly": {}})
        moving.project.up()
        before, whole = moving.ids(), set(server.jobs)
        moving.changes()
        done = 0
        while done < kills:
            rows = [{**row, "squad": dice.choice(["", "squad", "other"])} for row in rows]
            moving.lay(*rows, schedules={"nightly": {"squad": dice.choice(["", "squad"])}})
            victim = _disturb(moving, dice)
            done += victim is not None
            moving.project.up()
            moving.project.assert_no_changes("--refresh")
            print(f"{done} of {kills} kills ({victim or 'none, it was over before'}), then a clean up", flush=True)
            wrong += [f"after {done} kills: {verb} {name}" for verb, name in moving.changes()]
            if moving.ids() != before or set(server.jobs) != whole or len(server.schedules) != 1:
                wrong.append(f"after {done} kills: the state has {moving.ids()}, there are {sorted(server.jobs)}")
        moving.project.destroy()
        deleted = [name for verb, name in moving.changes() if verb == "DELETE" and "/schedules/" not in name]
        if sorted(deleted) != sorted(whole):
            wrong.append(f"a destroy deletes {sorted(deleted)}")
    shutil.rmtree(folder)
    return wrong


def _disturb(moving: Moving, dice: random.Random) -> str | None:
    """Run an `up` and kill some of it; return what was killed, None if it was over before."""
    run = moving.project.start_pulumi("up", "--yes", "--skip-preview", "--stack", moving.project.name)
    after, started = dice.uniform(0.0, _SECONDS), None
    while run.poll() is None:
        if started is None and any(PROVIDER in line for _, line in descendants(run.pid)):
            started = time.monotonic()
        if started is not None and time.monotonic() > started + after:
            break
        time.sleep(0.02)
    victim = None
    if run.poll() is None:
        victim = dice.choice(_VICTIMS)
        below = dict(descendants(run.pid))
        chosen = [run.pid, *(below if victim == "all of them" else [])]
        if victim == "provider":
            chosen = [pid for pid, line in below.items() if PROVIDER in line]
        for pid in chosen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    run.communicate(timeout=_MOST_SECONDS)
    if run.returncode < 0:
        moving.project.pulumi("cancel", "--yes", moving.project.name)
    return victim


def main() -> int:
    options = kills_parser("tests.faults.urn_kills", __doc__, 10).parse_args()
    return verdict(kill(options.kills, options.seed), "no job was cancelled, deleted or submitted again")


if __name__ == "__main__":
    sys.exit(main())
