"""Kill `pulumi` and its processes at random moments of `up` and `destroy`, and look at what one clean run then leaves.

    python -m tests.faults.engine_kills --kills 100 --seed 1
    python -m tests.faults.engine_kills --kills 100 --seed 1 --same-again
    python -m tests.faults.engine_kills --kills 50 --seed 1 --faulty-api

Between the kills the declarations change. After one `up --refresh` that nothing disturbs, or one `destroy`, the
emulator holds exactly the declared jobs: none twice, none that the state does not record, none lost. Excused are jobs
that no state proves to be this stack's, as a kill of the provider alone and an edit leave: they stay, and a line must
name each. Without `--refresh` a job that a killed run had deleted and still records would be believed to be there.

With `--same-again` what was killed is run again as it was, up to three times, and the last time nothing disturbs it:
a plain `up`, or a `destroy`. With `--faulty-api` the emulator limits submissions to 600 a minute in every run, and in
those that are killed it also answers some requests with 503, late, or not at all. Docker is needed. The exit code is 1
when what is left is not what is declared.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.engine.project import Project
from tests.faults.command import kills_parser, verdict
from tests.faults.engine_load import COLLECTIONS, DeclaredJobs, setting_of
from tests.vertex_emulator.running import PATIENCE_SECONDS, until

JOBS = 20
PROVIDER = "-m pulumi.dynamic"
_VICTIMS = {
    "engine": "",
    "provider": PROVIDER,
    "provider's shell": "pulumi-resource-pulumi-python",
    "language host": "pulumi-language-python ",
    "program": "pulumi-language-python-exec",
    "all of them": "",
}
_WEIGHTS = (6, 5, 1, 1, 1, 3)
_MOST_SECONDS = 600.0
_NAMED = re.compile(r"(projects/\S+) stays: no state of this stack")


@dataclass
class Report:
    """What was killed in which run, what was edited, which faults were injected, and what is `wrong`.

    `named` are the jobs of which a run has said that they stay.
    """

    kills: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    named: set[str] = field(default_factory=set)
    clean_runs: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def killed(self) -> int:
        """How many runs were killed."""
        return sum(self.kills.values())


class Stack:
    """A project whose `pulumi` is killed again and again, and whose jobs change in between."""

    def __init__(self, project: Project, seed: int, jobs: int, *, same_again: bool, faulty_api: bool) -> None:
        self.project = project
        self.report = Report()
        self._same_again, self._faulty_api = same_again, faulty_api
        self._dice = random.Random(seed)
        self._jobs = DeclaredJobs(self._dice, jobs)
        # Seconds of a whole run, and of the part in which there is a provider: about what the last ones took.
        self._spans = {"up": (6.0, 4.0), "destroy": (4.0, 2.5)}

    def run(self, kills: int) -> None:
        """So many kills, a clean run after each few of them, and at the end a clean `destroy`."""
        self._edit()
        while self.report.killed < kills:
            verb = self._verb()
            for _ in range(min(self._dice.randint(1, 3), kills - self.report.killed)):
                while not self._disturbed(verb):
                    self._edit()
                    # What a destroy has emptied is destroyed again in no time.
                    verb = "up"
                if not self._same_again:
                    self._edit()
                    verb = self._verb()
            self._clean(verb)
            print(f"{self.report.killed} of {kills} kills, then a clean {verb}", flush=True)
            self._edit()
        self._clean("destroy")

    def _verb(self) -> str:
        return "destroy" if self._dice.random() < 0.25 else "up"

    def _disturbed(self, verb: str) -> bool:
        """A run that is killed; False for one that was over before that."""
        self._inject(disturbing=True)
        begin = time.monotonic()
        run = self.project.start_pulumi(*_arguments(verb))
        whole, provided = self._spans[verb]
        started = None
        # Half of the kills fall anywhere, and half into the time in which the provider calls the API.
        anywhere = begin + self._dice.uniform(0.0, whole) if self._dice.random() < 0.5 else None
        after = self._dice.uniform(0.0, provided)
        while run.poll() is None:
            now = time.monotonic()
            if started is None and any(PROVIDER in line for _, line in descendants(run.pid)):
                started = now
            if now > anywhere if anywhere is not None else started is not None and now > started + after:
                break
            time.sleep(0.05)
        victim = self._kill(run) if run.poll() is None else None
        output, _ = run.communicate(timeout=_MOST_SECONDS)
        self.report.named.update(_NAMED.findall(output))
        # Pulumi's own program dies with one when its host is gone.
        if "Traceback" in output and victim not in ("language host", "program"):
            self.report.wrong.append(f"{verb} shows a traceback after a kill of {victim}: {output[-2000:]}")
        if victim is None:
            end = time.monotonic()
            self._spans[verb] = (end - begin, end - (started or begin))
            return False
        self.report.kills[f"{verb}: {victim}"] += 1
        if run.returncode < 0:
            # What a user does, and at once: the provider may still be there when the next run begins.
            self.project.pulumi("cancel", "--yes", self.project.name)
        return True

    def _kill(self, run: subprocess.Popen[str]) -> str | None:
        """Kills a process of a run, chosen at random; None when there is none of that kind at the moment."""
        victim = self._dice.choices(list(_VICTIMS), _WEIGHTS)[0]
        below = dict(descendants(run.pid))
        chosen = [pid for pid, line in below.items() if _VICTIMS[victim] in line]
        if victim in ("engine", "all of them"):
            chosen = [run.pid, *(below if victim == "all of them" else [])]
        for pid in chosen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return victim if chosen else None

    def _clean(self, verb: str) -> None:
        """A run that nothing disturbs, and what it must leave."""
        self._inject(disturbing=False)
        refresh = ["--refresh"] if verb == "up" and not self._same_again else []
        try:
            self.report.named.update(_NAMED.findall(self.project.pulumi(*_arguments(verb), *refresh)))
        except AssertionError as failed:
            self.report.wrong.append(f"after {self.report.killed} kills, a clean {verb} fails: {failed}")
            return
        self.report.clean_runs += 1
        self.report.wrong += [f"after {self.report.killed} kills, {verb}: {line}" for line in self._wrong(verb)]
        if verb == "up":
            self.project.assert_no_changes()

    def _inject(self, *, disturbing: bool) -> None:
        """Let the emulator behave in the next run as the service does on a bad day."""
        if not self._faulty_api:
            return
        faults: list[dict[str, Any]] = [{"kind": "rate", "per_minute": 600}]
        if disturbing:
            faults += [{"kind": kind, "count": self._dice.randint(1, 3)} for kind in ("unavailable", "lost-answer")]
            faults += [{"kind": "slow", "seconds": 0.5, "count": self._dice.randint(1, 6)}]
        until(lambda: self._has_taken(faults), "an emulator that takes faults")
        for fault in faults:
            self.report.faults[fault["kind"]] += fault.get("count", 1)

    def _has_taken(self, faults: list[dict[str, Any]]) -> bool:
        """Whether the emulator has taken faults; what a killed `destroy` has begun to stop is started again."""
        try:
            if not (self.project.data / "endpoint.json").exists():
                self.project.start_emulator()
            url = f"{self.project.endpoint()['url']}/vertex_emulator/faults"
            requests.delete(url, timeout=PATIENCE_SECONDS).raise_for_status()
            for fault in faults:
                requests.post(url, json=fault, timeout=PATIENCE_SECONDS).raise_for_status()
        except (FileNotFoundError, requests.ConnectionError):
            return False
        return True

    def _wrong(self, verb: str) -> Iterator[str]:
        declared = self._jobs.settings if verb == "up" else {}
        if not (self.project.data / "endpoint.json").exists():
            self.project.start_emulator()
        recorded = {item.get("id") for item in self.project.resources().values() if "run" in item.get("outputs", {})}
        excused = self.report.named - recorded
        held = [job for collection in COLLECTIONS for job in self.project.list_jobs(collection)]
        held = [job for job in held if job["name"] not in excused]
        found = Counter((job["labels"]["pulumi_name"], setting_of(job)) for job in held)
        for job in sorted({*declared.items(), *found}):
            if found[job] != (job in declared.items()):
                yield f"{job} is there {found[job]} times, declared {(job in declared.items()):d} times"
        if recorded != {job["name"] for job in held}:
            yield f"the state records {sorted(map(str, recorded))}, there are {sorted(job['name'] for job in held)}"

    def _edit(self) -> None:
        if self._dice.random() < 0.7:
            self.report.edits.update(self._jobs.edit())
        self.project.declarations = self._jobs.declarations
        self.project.declare()


def kill(kills: int, seed: int, jobs: int = JOBS, *, same_again: bool = False, faulty_api: bool = False) -> Report:
    """Kill so many times; what came of it."""
    folder = Path(tempfile.mkdtemp(prefix="vertex-engine-kills-"))
    stack = Stack(Project(folder), seed, jobs, same_again=same_again, faulty_api=faulty_api)
    begin = time.monotonic()
    try:
        stack.run(kills)
    finally:
        stack.report.seconds = time.monotonic() - begin
        stack.project.run_emulator("stop")
        stack.project.run_emulator("reset", "--yes")
    shutil.rmtree(folder)
    return stack.report


def _arguments(verb: str) -> list[str]:
    return [verb, "--yes", "--skip-preview", "--stack", "local"]


def descendants(parent: int) -> Iterator[tuple[int, str]]:
    """The processes below one, with their command lines."""
    parents: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            above = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(above, []).append(int(process.name))
    found = list(parents.get(parent, []))
    for pid in found:
        found += parents.get(pid, [])
        with suppress(OSError):
            yield pid, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def main() -> int:
    parser = kills_parser("tests.faults.engine_kills", __doc__, 100)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--same-again", action="store_true", help="go on with what was killed, without --refresh")
    parser.add_argument("--faulty-api", action="store_true", help="with a limit a minute, 503s, lost and late answers")
    options = parser.parse_args()
    report = kill(
        options.kills, options.seed, options.jobs, same_again=options.same_again, faulty_api=options.faulty_api
    )
    print(f"seed {options.seed}: {report.killed} kills, {report.clean_runs} clean runs, {report.seconds:.0f} s")
    for counter in (report.kills, report.edits, report.faults):
        for what, count in sorted(counter.items()):
            print(f"  {count:4} {what}")
    print(f"  {len(report.named):4} jobs named that stay")
    return verdict(report.wrong, "after each clean run exactly the declared jobs were there")


if __name__ == "__main__":
    sys.exit(main())
