"""What a stack declares from one run to the next: about twenty jobs, of which some come, go and change each time."""

import random
from collections.abc import Mapping
from typing import Any

from tests.vertex_emulator.running import IMAGE

COLLECTIONS = ("customJobs", "hyperparameterTuningJobs")
_PROGRAMS = {"ends at once": "exit 0", "fails": "exit 3", "runs on": "trap 'exit 143' TERM; sleep 20 & wait"}
_WEIGHTS = (7, 2, 1)
_SETTINGS = 3
"""So few that an edit is often taken back by a later one."""


class DeclaredJobs:
    """Jobs by name, as a project declares them."""

    def __init__(self, dice: random.Random, count: int) -> None:
        self._dice = dice
        self._count = count
        self._number = 0
        self._collections: dict[str, dict[str, dict[str, Any]]] = {collection: {} for collection in COLLECTIONS}
        for _ in range(count):
            self._add()

    @property
    def declarations(self) -> dict[str, Any]:
        """The file that declares them."""
        return {collection: jobs for collection, jobs in self._collections.items() if jobs}

    @property
    def settings(self) -> dict[str, str]:
        """By name: what a job must have in its environment to be the one that is declared."""
        return {name: setting_of(job) for jobs in self._collections.values() for name, job in jobs.items()}

    def edit(self) -> list[str]:
        """Change something; what was done."""
        return [self._edit() for _ in range(self._dice.randint(1, 4))]

    def _edit(self) -> str:
        changes = [self._change_setting, self._rename, self._rerun, self._wait]
        if len(self.settings) >= self._count - 2:
            changes.append(self._remove)
        if len(self.settings) <= self._count + 2:
            changes.append(self._add)
        return self._dice.choice(changes)()

    def _add(self) -> str:
        self._number += 1
        name = f"job-{self._number:03}"
        kind = self._dice.choices(list(_PROGRAMS), _WEIGHTS)[0]
        container = {
            "imageUri": IMAGE,
            "command": ["sh", "-c", _PROGRAMS[kind]],
            "env": [{"name": "SETTING", "value": str(self._dice.randrange(_SETTINGS))}],
        }
        spec = {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}]}
        if self._dice.random() < 0.85:
            self._collections["customJobs"][name] = {"jobSpec": spec}
        else:
            self._collections["hyperparameterTuningJobs"][name] = {
                "studySpec": {
                    "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
                    "parameters": [{"parameterId": "n", "integerValueSpec": {"minValue": 1, "maxValue": 3}}],
                },
                "maxTrialCount": 1,
                "parallelTrialCount": 1,
                "trialJobSpec": spec,
            }
        return f"added one that {kind}"

    def _remove(self) -> str:
        name = self._any()
        del self._jobs_with(name)[name]
        return "removed"

    def _rename(self) -> str:
        name = self._any()
        new = name.removesuffix("-renamed") if name.endswith("-renamed") else f"{name}-renamed"
        jobs = self._jobs_with(name)
        jobs[new] = jobs.pop(name)
        return "renamed"

    def _change_setting(self) -> str:
        name = self._any()
        _container(self._jobs_with(name)[name])["env"][0]["value"] = str(self._dice.randrange(_SETTINGS))
        return "edited"

    def _rerun(self) -> str:
        name = self._any()
        lifecycle = self._jobs_with(name)[name].setdefault("lifecycle", {})
        lifecycle["rerun"] = lifecycle.get("rerun", 0) + 1
        return "rerun"

    def _wait(self) -> str:
        succeeding = [
            name for name, job in self._collections["customJobs"].items() if "exit 0" in _container(job)["command"]
        ]
        if not succeeding:
            return "none to wait for"
        name = self._dice.choice(sorted(succeeding))
        lifecycle = self._collections["customJobs"][name].setdefault("lifecycle", {})
        lifecycle["wait"] = not lifecycle.get("wait", False)
        return "waited for" if lifecycle["wait"] else "no longer waited for"

    def _any(self) -> str:
        return self._dice.choice(sorted(self.settings))

    def _jobs_with(self, name: str) -> dict[str, dict[str, Any]]:
        return next(jobs for jobs in self._collections.values() if name in jobs)


def setting_of(job: Mapping[str, Any]) -> str:
    """What a declared job, or one that is there, has in its environment."""
    return str(_container(job)["env"][0]["value"])


def _container(job: Mapping[str, Any]) -> dict[str, Any]:
    spec = job["jobSpec"] if "jobSpec" in job else job["trialJobSpec"]
    container: dict[str, Any] = spec["workerPoolSpecs"][0]["containerSpec"]
    return container
