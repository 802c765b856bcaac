"""Kill the emulator at random moments under a mixed load, and compare with the same load undisturbed.

    python -m tests.faults.kills --kills 200 --seed 1

Nothing may be lost and nothing doubled: every job ends as in the undisturbed run, every replica was started once, every
output was written once, and no container or network is left. Docker is needed. The exit code is 1 on a difference.
"""

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tests.faults.client import PatientClient
from tests.faults.command import kills_parser, verdict
from tests.faults.load import Item, items, traces
from tests.vertex_emulator.preloaded import ForkedProcess
from tests.vertex_emulator.running import PATIENCE_SECONDS, command, until

_IN_FLIGHT = 6
_LONGEST_START_SECONDS = 0.4
_LONGEST_LIFE_SECONDS = 2.0
_PAUSE_SECONDS = 0.05


class Emulator:
    """An emulator process on a data folder, killed and started again `kills` times by a thread of its own."""

    def __init__(self, data: Path, kills: int, seed: int) -> None:
        self.data = data
        self.kills_ready: list[bool] = []
        self._dice = random.Random(seed)
        self._log = data.with_suffix(".log")
        self._start()
        self._killer = threading.Thread(target=self._kill, args=(kills,))
        self._killer.start()

    @property
    def is_disturbed(self) -> bool:
        """Whether further kills come."""
        return self._killer.is_alive()

    def end(self) -> None:
        """Wait for the last kill, then stop."""
        self._killer.join()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_SECONDS)

    def _start(self) -> None:
        self.process = ForkedProcess(["serve", "--data", str(self.data)], self._log, self._log)

    def _kill(self, kills: int) -> None:
        for _ in range(kills):
            # A third of the lives may end while the emulator is still starting, however slow the machine is.
            longest = _LONGEST_START_SECONDS
            if self._dice.random() > 1 / 3:
                until(self._is_ready, "the start")
                longest = _LONGEST_LIFE_SECONDS
            time.sleep(self._dice.uniform(0.0, longest))
            assert self.process.poll() is None, f"the emulator ended by itself, see {self._log}"
            self.kills_ready.append(self._is_ready())
            self.process.kill()
            self.process.wait()
            self._start()

    def _is_ready(self) -> bool:
        try:
            return bool(json.loads((self.data / "endpoint.json").read_text())["pid"] == self.process.pid)
        except (OSError, ValueError):
            return False


@dataclass
class Run:
    """What came of a load."""

    items: list[Item]
    traces: dict[str, Any]
    leftovers: list[str]
    kills_ready: list[bool]
    lost_answers: int
    seconds: float

    @property
    def results(self) -> dict[str, Any]:
        """What must be equal in every run."""
        starts = self.traces["starts"]
        return {
            "outcomes": {item.name: (item.kind, item.outcome) for item in self.items},
            "leftovers": self.leftovers,
            "outputs": self.traces["outputs"],
            # A cancelled study may have begun one trial or two.
            "starts": {start: count for start, count in starts.items() if start.split()[0] in self._fixed},
            "most starts of one replica": max(starts.values()),
        }

    @property
    def _fixed(self) -> set[str]:
        return {item.name for item in self.items if item.kind != "study is cancelled"}


def run(data: Path, seed: int, kills: int, at_least: int) -> Run:
    """Run the load on a fresh data folder: so many items at least, and on until the last kill."""
    begin = time.perf_counter()
    files = data / "gcs" / "faults"
    files.mkdir(parents=True)
    files.chmod(0o777)
    emulator, client = Emulator(data, kills, seed), PatientClient(data)
    source, done, open_items = items(seed), list[Item](), list[Item]()
    try:
        while len(done) < at_least or emulator.is_disturbed or open_items:
            wanted = _IN_FLIGHT - len(open_items)
            if not emulator.is_disturbed:
                wanted = min(wanted, at_least - len(done) - len(open_items))
            open_items += islice(source, max(wanted, 0))
            for item in list(open_items):
                if item.step(client, files):
                    open_items.remove(item)
                    done.append(item)
            time.sleep(_PAUSE_SECONDS)
        until(lambda: not list_leftovers(read_emulator_id(data)), "removal of all containers")
    finally:
        left = list_leftovers(read_emulator_id(data))
        emulator.end()
        client.close()
    done.sort(key=lambda item: item.name)
    return Run(done, traces(files), left, emulator.kills_ready, client.lost_answers, time.perf_counter() - begin)


def compare(kills: int, seed: int, at_least: int = 12) -> tuple[Run, Run, list[str]]:
    """The disturbed run, the undisturbed one, and how they differ."""
    folder = Path(tempfile.mkdtemp(prefix="vertex-kills-"))
    try:
        disturbed = run(folder / "disturbed", seed, kills, at_least)
        undisturbed = run(folder / "undisturbed", seed, 0, len(disturbed.items))
    finally:
        for data in folder.iterdir():
            if data.is_dir():
                command("reset", "--yes", data=data)
    shutil.rmtree(folder)
    return disturbed, undisturbed, list(_differences(undisturbed.results, disturbed.results, ""))


def _differences(wanted: Any, found: Any, where: str) -> list[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        keys = sorted({*wanted, *found})
        return [line for key in keys for line in _differences(wanted.get(key), found.get(key), f"{where}/{key}")]
    return [] if wanted == found else [f"{where}: {found!r} where the undisturbed run has {wanted!r}"]


def read_emulator_id(data: Path) -> str:
    """The id of a data folder's emulator."""
    database = sqlite3.connect(data / "emulator.db")
    try:
        return str(database.execute("SELECT value FROM settings WHERE key = 'emulator'").fetchone()[0])
    finally:
        database.close()


def list_leftovers(emulator_id: str) -> list[str]:
    """Containers and networks of an emulator."""
    label = f"label=vertex-training.emulator={emulator_id}"
    found: list[str] = []
    for what in (["ps", "-a"], ["network", "ls"]):
        done = subprocess.run(["docker", *what, "-q", "--filter", label], capture_output=True, text=True, check=True)
        found += [f"{what[0]} {line}" for line in done.stdout.split()]
    return found


def main() -> int:
    options = kills_parser("tests.faults.kills", __doc__, 200).parse_args()
    disturbed, undisturbed, differences = compare(options.kills, options.seed)
    early = disturbed.kills_ready.count(False)
    print(f"seed {options.seed}: {len(disturbed.kills_ready)} kills, {early} of them while it was starting;", end=" ")
    print(f"{disturbed.lost_answers} requests without an answer")
    for kind, count in sorted(Counter(item.kind for item in disturbed.items).items()):
        print(f"  {count:4} {kind}")
    starts = disturbed.traces["starts"]
    print(f"{sum(starts.values())} starts of {len(starts)} replicas, {len(disturbed.traces['outputs'])} outputs")
    print(f"{disturbed.seconds:.0f} s disturbed, {undisturbed.seconds:.0f} s undisturbed")
    return verdict(differences, "equal to the undisturbed run, nothing left over")


if __name__ == "__main__":
    sys.exit(main())
