"""Drills: a job once more, with a fault at its middle, and what it did after its second start.

A step is the number after `step`, `iteration` or `epoch` in a line of the first replica's log: `step 40`,
`epoch 3/10`, `global_step=40`, `"step": 40`. Of these words, the first counts whose numbers never fall while the job
runs undisturbed; so steps that begin anew in each epoch do not.
"""

import itertools
import json
import math
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vertex_api.messages import value_at
from vertex_api.names import JobJson, ResourceName

from ..errors import DeclarationErrors, SubmitFailed
from ..plan.training import Training
from ..rehearsal_file import Drill, JobReport
from ..runtime import emulator
from ..settings.settings import Settings
from .report import MAX_REASON
from .runner import Ended, Runner, RunRefused, changed

FAULTS = {"preempt": "preempt", "restart": "restart", "out-of-memory": "oom"}
"""The names of faults, and those of the emulator."""
WORDS = ("step", "iteration", "epoch")
SAME = 0.05
"""By how much of itself a metric may differ from that of the undisturbed run and be the same: trainings vary."""
_STEP = re.compile(r"""(?<!per[ _])(?<![a-z])(step|iteration|epoch)\b["']?\s*[:=#\[(]*\s*(\d{1,15})\b""", re.IGNORECASE)
_UNKNOWN = "whether it goes on is not known: "
_NO_STEPS = "no line of its first replica's log has a step, such as `step 40` or `epoch 3`"


@dataclass(frozen=True)
class Steps:
    """The numbers of steps in a log: of each start of the first replica, by the word before them, in order."""

    starts: dict[int, dict[str, list[int]]] = field(default_factory=dict)

    def add(self, start: int, text: str) -> None:
        """Add a line of the log."""
        by_word = self.starts.setdefault(start, {})
        for word, number in _STEP.findall(text):
            by_word.setdefault(word.lower(), []).append(int(number))

    def word(self) -> str:
        """Return the word that counts in this log of an undisturbed run, "" if none does."""
        found = self.starts.get(0, {})
        return next((word for word in WORDS if len({*found.get(word, ())}) > 1 and _rises(found[word])), "")

    def of(self, start: int, word: str) -> list[int]:
        """Return the steps of a start."""
        return self.starts.get(start, {}).get(word, [])


def _rises(numbers: Sequence[int]) -> bool:
    return all(earlier <= later for earlier, later in itertools.pairwise(numbers))


class Follower:
    """Reads the steps of a job from its log while it runs; `folder` is that of the emulator's data."""

    def __init__(self, folder: Path, job_id: str) -> None:
        self.steps = Steps()
        arguments = ["logs", "--follow", "--json", "--task=workerpool0-0", f"--data={folder}", job_id]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "vertex_emulator", *arguments],
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    entry = json.loads(line)
                    # The id ends with the trial, the attempt, and the number of the line.
                    start = int(entry["insertId"].rsplit("-", 2)[1])
                except (ValueError, KeyError, IndexError):
                    continue
                payload = entry.get("jsonPayload") or {}
                message = payload.get("message")
                self.steps.add(start, message if isinstance(message, str) else json.dumps(payload))

    def finish(self) -> Steps:
        """Return the steps of the whole log of a job that has ended."""
        self._process.wait()
        self._thread.join()
        return self.steps

    def stop(self) -> None:
        """End the reading."""
        self._process.kill()
        self.finish()


def steps_of(runner: Runner, ended: Ended) -> Steps:
    """Return the steps of a job that has ended."""
    return Follower(runner.folder, ResourceName.parse(ended.job["name"]).id).finish()


def drills(
    runner: Runner, settings: Settings, training: Training, ended: Ended, made: JobReport, faults: Sequence[str]
) -> Iterator[Drill]:
    """Yield the drills of a job that has succeeded, which `made` reports; none of a search. Raises what runs raise."""
    if training.job.study_spec:
        runner.say(f"{training.name}: is a search, whose trials begin anew by themselves: no drill")
        return
    driller = Driller(runner, settings, training, made, steps_of(runner, ended))
    for fault in faults:
        try:
            yield driller.drill(fault)
        except (DeclarationErrors, RunRefused) as error:
            yield {"fault": fault, "reason": str(error)}


@dataclass(frozen=True)
class Driller:
    """Drills a job that has run undisturbed: `undisturbed` says what it did, `steps` which steps it made."""

    runner: Runner
    settings: Settings
    training: Training
    undisturbed: JobReport
    steps: Steps

    def drill(self, fault: str) -> Drill:
        """Run the job with a fault at its middle, and again if that ends it. Raises what a run raises."""
        training = _spot(self.training) if fault == "preempt" else self.training
        place = f"{training.name}-drill-{fault}"
        struck = _Struck(self, FAULTS[fault])
        ended = struck.run(training, place)
        if not struck.has_struck:
            return {"fault": fault, "outcome": _outcome(ended), "reason": f"{_UNKNOWN}it ended before the fault"}
        first, second, reason = struck.steps.of(0, self.word), struck.steps.of(1, self.word), ""
        if 1 not in struck.steps.starts and not ended.succeeded:
            reason = "it ended the job, which was submitted again"
            ended = self.runner.run(self.settings, training, follow_log=False, place=place)
            second = steps_of(self.runner, ended).of(0, self.word)
        made: Drill = {"fault": fault, "outcome": _outcome(ended), "metrics": {**ended.metrics}}
        if before := self.undisturbed.get("metrics", {}):
            made["sameEnd"] = ended.succeeded and is_same(before, ended.metrics)
        judged: Any = judge(self.steps.of(0, self.word), first, second, succeeded=ended.succeeded)
        reasons = [reason, judged.get("reason", ""), ended.failure.partition("\n")[0]]
        return {**made, **judged, "reason": "; ".join(filter(None, reasons))[:MAX_REASON]}

    @property
    def word(self) -> str:
        """The word before the steps that count."""
        return self.steps.word()


class _Struck:
    """A run of a job that is struck at its middle: by steps if the undisturbed run made any, else by time."""

    def __init__(self, driller: Driller, kind: str) -> None:
        self._driller, self._kind = driller, kind
        self._follower: Follower | None = None
        self._started = 0.0
        self.has_struck = False
        self.steps = Steps()

    def run(self, training: Training, place: str) -> Ended:
        driller = self._driller
        try:
            ended = driller.runner.run(driller.settings, training, follow_log=False, place=place, during=self._during)
            self.steps = self._follower.finish() if self._follower else self.steps
        except BaseException:
            if self._follower:
                self._follower.stop()
            raise
        return ended

    def _during(self, job: JobJson) -> None:
        """Strike once, when the middle is reached."""
        if self.has_struck or not str(job["state"]).endswith("_STATE_RUNNING"):
            return
        job_id = ResourceName.parse(job["name"]).id
        if self._follower is None:
            self._follower, self._started = Follower(self._driller.runner.folder, job_id), time.monotonic()
        if self._is_middle(self._follower):
            place = f"{self._driller.training.name}: drill"
            with suppress(SubmitFailed):  # it has just ended
                emulator.request("POST", f"jobs/{job_id}/faults", {"kind": self._kind}, place)
                self.has_struck = True

    def _is_middle(self, follower: Follower) -> bool:
        made = self._driller.steps.of(0, self._driller.word)
        if not made:
            return time.monotonic() - self._started >= self._driller.undisturbed.get("seconds", 0) / 2
        seen = follower.steps.of(0, self._driller.word)
        return bool(seen) and seen[-1] >= made[len(made) // 2]


def judge(undisturbed: Sequence[int], first: Sequence[int], second: Sequence[int], *, succeeded: bool) -> Any:
    """Return `resumed`, `fromStep`, `lostSteps` and `reason` of a drill, by the steps of its two starts."""
    told: Any = {}
    if not undisturbed or not first:
        told["reason"] = _UNKNOWN + ("the fault came before its first step" if undisturbed else _NO_STEPS)
        return told
    begin = undisturbed[0]
    if first[0] > begin:
        told["reason"] = "it went on from a checkpoint of the undisturbed run, which is outside its output folder"
    if second:
        apart = min((b - a for a, b in itertools.pairwise(undisturbed) if b > a), default=1)
        lost = max(first[-1] - second[0] + apart, 0)
        return {**told, "resumed": second[0] > begin, "fromStep": second[0], "lostSteps": lost}
    if succeeded:
        return {**told, "resumed": True, "lostSteps": 0, "reason": "nothing was left to do"}
    return {**told, "resumed": False}


def is_same(before: Mapping[str, float], after: Mapping[str, float]) -> bool:
    """Return whether a run reports the metrics of another one, and each within SAME of it."""
    names = before.keys()
    return names <= after.keys() and all(math.isclose(before[name], after[name], rel_tol=SAME) for name in names)


def _spot(training: Training) -> Training:
    """Return a job on Spot machines: nothing else is preempted."""
    fields = json.loads(json.dumps(training.job.fields))
    value_at(fields, training.job.job_spec_path).setdefault("scheduling", {})["strategy"] = "SPOT"
    return changed(training, fields, "--drill preempt")


def _outcome(ended: Ended) -> Any:
    return "succeeded" if ended.succeeded else "failed"
