"""What a stack declares from one run to the next: about twenty jobs, of which some come, go and change each time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from tests.emulator.running import IMAGE

_PROGRAMS = {"ends at once": "exit 0", "fails": "exit 3", "runs on": "trap 'exit 143' TERM; sleep 20 & wait"}
_WEIGHTS = (7, 2, 1)
_SETTINGS = 3
"""So few that an edit is often taken back by a later one."""


class DeclaredJobs:
    """Jobs by name, as they stand in a project's declarations under `customJobs` and `hyperparameterTuningJobs`."""

    def __init__(self, dice: random.Random, count: int) -> None:
        self._dice = dice
        self._count = count
        self._number = 0
        self.customJobs: dict[str, dict[str, Any]] = {}
        self.hyperparameterTuningJobs: dict[str, dict[str, Any]] = {}
        for _ in range(count):
            self._add()

    @property
    def declarations(self) -> dict[str, Any]:
        """The file that declares them."""
        return {collection: jobs for collection, jobs in self._collections.items() if jobs}

    @property
    def names(self) -> set[str]:
        return {name for jobs in self._collections.values() for name in jobs}

    def setting(self, name: str) -> str:
        """What the job must have in its environment to be the one that is declared."""
        return str(_container(self._jobs_with(name)[name])["env"][0]["value"])

    def edit(self) -> list[str]:
        """Change something; what was changed."""
        return [self._edit() for _ in range(self._dice.randint(1, 4))]

    @property
    def _collections(self) -> Mapping[str, dict[str, dict[str, Any]]]:
        return {"customJobs": self.customJobs, "hyperparameterTuningJobs": self.hyperparameterTuningJobs}

    def _edit(self) -> str:
        changes = [self._change_setting, self._rename, self._rerun, self._wait]
        if len(self.names) >= self._count - 2:
            changes.append(self._remove)
        if len(self.names) <= self._count + 2:
            changes.append(self._add)
        return self._dice.choice(changes)()

    def _add(self) -> str:
        self._number += 1
        name = f"job-{self._number:03}"
        kind = self._dice.choices(list(_PROGRAMS), _WEIGHTS)[0]
        value = f"{name} {self._dice.randrange(_SETTINGS)}"
        container = {
            "imageUri": IMAGE,
            "command": ["sh", "-c", _PROGRAMS[kind]],
            "env": [{"name": "SETTING", "value": value}],
        }
        spec = {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}]}
        if self._dice.random() < 0.85:
            self.customJobs[name] = {"jobSpec": spec}
        else:
            self.hyperparameterTuningJobs[name] = {
                "studySpec": {
                    "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
                    "parameters": [{"parameterId": "n", "integerValueSpec": {"minValue": 1, "maxValue": 3}}],
                },
                "maxTrialCount": 1,
                "parallelTrialCount": 1,
                "trialJobSpec": spec,
            }
        return f"{name} added, which {kind}"

    def _remove(self) -> str:
        name = self._any()
        del self._jobs_with(name)[name]
        return f"{name} removed"

    def _rename(self) -> str:
        name = self._any()
        new = name.removesuffix("-renamed") if name.endswith("-renamed") else f"{name}-renamed"
        jobs = self._jobs_with(name)
        jobs[new] = jobs.pop(name)
        return f"{name} renamed to {new}"

    def _change_setting(self) -> str:
        name = self._any()
        environment = _container(self._jobs_with(name)[name])["env"][0]
        environment["value"] = f"{environment['value'].split()[0]} {self._dice.randrange(_SETTINGS)}"
        return f"{name} edited"

    def _rerun(self) -> str:
        name = self._any()
        lifecycle = self._jobs_with(name)[name].setdefault("lifecycle", {})
        lifecycle["rerun"] = lifecycle.get("rerun", 0) + 1
        return f"{name} to run again"

    def _wait(self) -> str:
        succeeding = [name for name, job in self.customJobs.items() if "exit 0" in _container(job)["command"]]
        if not succeeding:
            return "nothing"
        name = self._dice.choice(sorted(succeeding))
        lifecycle = self.customJobs[name].setdefault("lifecycle", {})
        lifecycle["wait"] = not lifecycle.get("wait", False)
        return f"{name} {'waited for' if lifecycle['wait'] else 'no longer waited for'}"

    def _any(self) -> str:
        return self._dice.choice(sorted(self.names))

    def _jobs_with(self, name: str) -> dict[str, dict[str, Any]]:
        return next(jobs for jobs in self._collections.values() if name in jobs)


def _container(job: Mapping[str, Any]) -> dict[str, Any]:
    spec = job["jobSpec"] if "jobSpec" in job else job["trialJobSpec"]
    container: dict[str, Any] = spec["workerPoolSpecs"][0]["containerSpec"]
    return container
