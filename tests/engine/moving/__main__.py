"""Jobs as `layout.json` lays them out: each with its kind, and the component that it is in, if any."""

import json
from pathlib import Path
from typing import Any

import pulumi
import vertex_training as vt

LAYOUT: dict[str, Any] = json.loads(Path("layout.json").read_text())


class Squad(pulumi.ComponentResource):
    """A component of a team's own."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("team:index:Squad", name, None, opts)


def pool(argument: str) -> Any:
    container = {"imageUri": "python:3.11-slim-bookworm", "args": [argument]}
    return {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}


def custom(row: dict[str, Any]) -> Any:
    folder = {"baseOutputDirectory": {"outputUriPrefix": row["folder"]}} if "folder" in row else {}
    return {"displayName": row["shown"], "jobSpec": {"workerPoolSpecs": [pool(row["argument"])], **folder}}


def tuning(row: dict[str, Any]) -> Any:
    return {
        "displayName": row["shown"],
        "studySpec": {
            "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
            "parameters": [{"parameterId": "lr", "doubleValueSpec": {"minValue": 0.0, "maxValue": 1.0}}],
        },
        "maxTrialCount": 2,
        "parallelTrialCount": 1,
        "trialJobSpec": {"workerPoolSpecs": [pool(row["argument"])]},
    }


def pipeline(row: dict[str, Any]) -> Any:
    return {"displayName": row["shown"], "trainingTaskInputs": {"workerPoolSpecs": [pool(row["argument"])]}}


KINDS: Any = {
    "custom": (vt.CustomJob, custom),
    "tuning": (vt.HyperparameterTuningJob, tuning),
    "pipeline": (vt.TrainingPipeline, pipeline),
}
squads: dict[str, Squad] = {}


def squad(name: str | None) -> Squad | None:
    if name and name not in squads:
        squads[name] = Squad(name)
    return squads.get(name or "")


def options(row: dict[str, Any]) -> pulumi.ResourceOptions:
    aliases = [pulumi.Alias(**row["alias"])] if "alias" in row else None
    return pulumi.ResourceOptions(parent=squad(row.get("squad")), aliases=aliases, **row.get("options", {}))


if LAYOUT.get("stack") is not None:
    below = Squad("below") if LAYOUT["stack"] == "below" else None
    vt.TrainingStack("training", LAYOUT.get("args"), pulumi.ResourceOptions(parent=below))
for row in LAYOUT["jobs"]:
    cls, make = KINDS[row["kind"]]
    cls(row["name"], make(row), opts=options(row), lifecycle=row.get("lifecycle"))
for name, row in LAYOUT.get("schedules", {}).items():
    template = vt.JobTemplate(vt.CustomJob, custom({"shown": "nightly", "argument": "a"}))
    args: vt.ScheduleArgs = {"cron": "0 2 * * *", "jobs": {"train": template}}
    vt.Schedule(name, args, opts=options(row))
