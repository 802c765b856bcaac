"""Kill `pulumi` and its processes at random moments of `up` and `destroy`, and look at what one clean run then leaves.

    python -m tests.faults.engine_kills --kills 100 --seed 1

Between the kills the declarations change. After a run that nothing disturbs the emulator holds exactly the declared
jobs: none twice, none that no state records, none lost. Docker is needed. The exit code is 1 when that is not so.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engine.project import Project
from tests.faults.engine_load import DeclaredJobs

JOBS = 20
_COLLECTIONS = ("customJobs", "hyperparameterTuningJobs")
_VICTIMS = {
    "engine": "",
    "provider": "pulumi.dynamic",
    "provider's shell": "pulumi-resource-pulumi-python",
    "language host": "pulumi-language-python ",
    "program": "pulumi-language-python-exec",
    "all": "",
}
_WEIGHTS = (6, 5, 1, 1, 1, 3)
_MOST_SECONDS = 240.0


@dataclass
class Report:
    """What was done, and what was found wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    clean_runs: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Stack:
    """A project whose `pulumi` is killed again and again."""

    def __init__(self, project: Project, seed: int, count: int) -> None:
        self.project = project
        self.report = Report()
        self._dice = random.Random(seed)
        self._jobs = DeclaredJobs(self._dice, count)
        self._spans = {"up": 6.0, "destroy": 4.0}

    def run(self, kills: int) -> None:
        """So many kills, with a clean run after each few of them, and at the end a clean `up` and `destroy`."""
        while sum(self.report.kills.values()) < kills:
            for _ in range(min(self._dice.randint(1, 3), kills - sum(self.report.kills.values()))):
                self._disturbed()
            self._clean("destroy" if self._dice.random() < 0.2 else "up")
        self._clean("up")
        self._clean("destroy")

    def _disturbed(self) -> None:
        """A run that is killed before its end; one that ends sooner is repeated."""
        while True:
            verb = "destroy" if self._dice.random() < 0.25 else "up"
            self._edit()
            begin = time.monotonic()
            process = self.project.start(*_arguments(verb))
            if self._dice.random() < 0.6:
                # Most calls of the API fall into the time after the provider's start.
                while process.poll() is None and not any(
                    _VICTIMS["provider"] in line for _, line in _descendants(process.pid)
                ):
                    time.sleep(0.02)
                wanted = time.monotonic() + self._dice.uniform(0.0, self._spans[verb] - 1.5)
            else:
                wanted = begin + self._dice.uniform(0.0, self._spans[verb])
            while time.monotonic() < wanted and process.poll() is None:
                time.sleep(0.005)
            victim = self._kill(process.pid) if process.poll() is None else None
            output, _ = process.communicate(timeout=_MOST_SECONDS)
            _log(f"{verb} killed ({victim}) after {time.monotonic() - begin:.1f} s, {process.returncode}")
            self._look_for_tracebacks(verb, output)
            if victim is None:
                self._spans[verb] = 0.5 * self._spans[verb] + 0.5 * (time.monotonic() - begin)
                continue
            self.report.kills[f"{verb}: {victim}"] += 1
            if victim in ("engine", "all"):
                # The provider may still be there when the next run begins.
                self.project.pulumi("cancel", "--yes", self.project.name)
            return

    def _kill(self, engine: int) -> str | None:
        """Kill a process of the run; which it was, if any of that kind is there."""
        victim = self._dice.choices(list(_VICTIMS), _WEIGHTS)[0]
        processes = {engine: "", **dict(_descendants(engine))}
        mark = _VICTIMS[victim]
        chosen = [pid for pid, line in processes.items() if mark in line]
        if victim == "engine":
            chosen = [engine]
        if victim == "provider":
            chosen = [pid for pid in chosen if "pulumi-resource" not in processes[pid]]
        for pid in chosen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return victim if chosen else None

    def _clean(self, verb: str) -> None:
        """A run that nothing disturbs, and what it must leave."""
        self._edit()
        begin = time.monotonic()
        output = self.project.pulumi(*_arguments(verb))
        self._spans[verb] = 0.5 * self._spans[verb] + 0.5 * (time.monotonic() - begin)
        self.report.clean_runs += 1
        wrong = list(self._wrong(verb))
        _log(f"clean {verb} {time.monotonic() - begin:.1f} s: {len(wrong)} wrong {wrong}")
        self.report.wrong += [f"after kill {sum(self.report.kills.values())}, clean {verb}: {line}" for line in wrong]
        if "pending operation" in output:
            self.report.edits["clean run with a warning of pending operations"] += 1
            _log(output[:1500])
        if verb == "up":
            self.project.assert_no_changes()

    def _wrong(self, verb: str) -> Iterator[str]:
        if not (self.project.data / "endpoint.json").exists():
            self.project.start_emulator()
        declared = self._jobs.names if verb == "up" else set()
        held = [job for collection in _COLLECTIONS for job in self.project.listed(collection)]
        names = Counter(job["labels"]["pulumi_name"] for job in held)
        for name in sorted(declared | names.keys()):
            if names[name] != (name in declared):
                shown = [
                    (
                        j["name"].rpartition("/")[2],
                        j["state"],
                        j["labels"]["pulumi_token"][:6],
                        j["createTime"],
                        _setting(j),
                    )
                    for j in held
                    if j["labels"]["pulumi_name"] == name
                ]
                yield f"{name} is there {names[name]} times, declared is {name in declared}: {shown}"
        for job in held:
            name = job["labels"]["pulumi_name"]
            if name in declared and _setting(job) != self._jobs.setting(name):
                yield f"{name} was made with {_setting(job)}, declared is {self._jobs.setting(name)}"
        recorded = {
            item["id"]
            for item in self.project.resources().values()
            if "/customJobs/" in item.get("id", "") or "/hyper" in item.get("id", "")
        }
        if recorded != {job["name"] for job in held}:
            yield f"the state records {sorted(recorded)}, and the emulator holds {sorted(job['name'] for job in held)}"

    def _edit(self) -> None:
        if self._dice.random() < 0.7:
            done = self._jobs.edit()
            self.report.edits.update(line.split(" ", 1)[-1].split(",")[0].split(" to ")[0] for line in done)
            _log(f"edits: {done}")
        self.project.declarations = self._jobs.declarations
        self.project.declare()

    def _look_for_tracebacks(self, verb: str, output: str) -> None:
        if "Traceback" in output:
            self.report.wrong.append(f"{verb} shows a traceback: {output[-2000:]}")


def kill(kills: int, seed: int, count: int = JOBS) -> Report:
    """Kill so many times; what came of it."""
    folder = Path(tempfile.mkdtemp(prefix="vertex-engine-kills-"))
    project = Project(folder)
    project.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    stack = Stack(project, seed, count)
    begin = time.monotonic()
    try:
        stack.run(kills)
    finally:
        stack.report.seconds = time.monotonic() - begin
        project.emulator("stop")
        project.emulator("reset", "--yes")
    shutil.rmtree(folder)
    return stack.report


def _arguments(verb: str) -> list[str]:
    return [verb, "--yes", "--skip-preview", "--stack", "local"]


def _setting(job: dict[str, Any]) -> str:
    spec = job["jobSpec"] if "jobSpec" in job else job["trialJobSpec"]
    return str(spec["workerPoolSpecs"][0]["containerSpec"]["env"][0]["value"])


def _descendants(parent: int) -> Iterator[tuple[int, str]]:
    """The processes below one, with their command lines."""
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and int((process / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                yield int(process.name), (process / "cmdline").read_text().replace("\0", " ")
                yield from _descendants(int(process.name))


def _log(line: str) -> None:
    if os.environ.get("V"):
        print(time.strftime("%X"), line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.faults.engine_kills", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    report = kill(options.kills, options.seed)
    print(
        f"seed {options.seed}: {sum(report.kills.values())} kills, {report.clean_runs} clean runs, {report.seconds:.0f} s"
    )
    for counter in (report.kills, report.edits):
        for what, count in sorted(counter.items()):
            print(f"  {count:4} {what}")
    for line in report.wrong:
        print(f"WRONG {line}")
    print("something is wrong" if report.wrong else "after each clean run exactly the declared jobs were there")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
