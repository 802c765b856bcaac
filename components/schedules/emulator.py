"""The schedules of the target local: resources of the emulator, which runs them."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.job import stored_job
from vertex_api.names import KINDS
from vertex_api.schedules import ScheduleRequest

from .. import providers
from ..errors import SubmitFailed
from ..runtime.emulator import request
from ..runtime.provider import Provider
from ..runtime.resource import DynamicResource, item, when_known
from ..runtime.target import LOCAL_PREFIX

_IDENTITY = ("parent", "scheduleId")
_REQUEST = ("cron", "timeZone", "paused", "overlap", "jobs")


class EmulatorScheduleProvider(Provider):
    """Puts a schedule to the emulator. What it keeps is read again, so a refresh shows what others have changed."""

    input_names = (*_IDENTITY, *_REQUEST)

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        return dynamic.CheckResult({name: news[name] for name in self.input_names if name in news}, [])

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        body = _body(props)
        answer = request("PUT", _path(props), body, f"{props['scheduleId']}: not scheduled")
        if answer is None:
            raise SubmitFailed(f"{props['scheduleId']}: not scheduled: this emulator has no schedules; update it")
        return dynamic.CreateResult(props["scheduleId"], {**_inputs(props), "status": emulator_status(answer)})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        answer = request("GET", _path(props), None, f"{id_}: not read")
        if answer is None:
            return dynamic.ReadResult(None, {})
        actual = {name: answer.get(name, props.get(name)) for name in _REQUEST}
        actual["jobs"] = _body(actual)["jobs"]
        return self.read_result(id_, {**props, **actual}, status=emulator_status(answer))

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Delete the schedule. Jobs of its runs stay."""
        request("DELETE", _path(props), None, f"{id_}: not deleted")


class EmulatorSchedule(DynamicResource):
    """A schedule of the emulator in `parent`, `//local/projects/P/locations/R`. `status` is that of `Schedule`."""

    output_names = ("status",)
    status: pulumi.Output[Mapping[str, Any]]

    def __init__(
        self, name: str, parent: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        fields: Any = when_known(lambda known: {"scheduleId": known.id, **known.to_json()}, request)
        inputs = {key: item(fields, key) for key in ("scheduleId", *_REQUEST)}
        ours = pulumi.ResourceOptions(replace_on_changes=list(_IDENTITY), delete_before_replace=True)
        super().__init__(
            providers.EmulatorSchedule(),
            name,
            {"parent": parent, **inputs, "status": None},
            pulumi.ResourceOptions.merge(ours, opts),
        )


def emulator_status(emulator_answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a schedule from the emulator's answer, as `Schedule.status` describes it."""
    times, runs = emulator_answer.get("nextTimes", []), emulator_answer.get("runs", [])
    next_time = {"nextTime": times[0]} if times and not emulator_answer.get("paused") else {}
    return next_time | ({"lastRun": {key: runs[0][key] for key in ("runId", "state", "modelDirs")}} if runs else {})


def _inputs(props: Mapping[str, Any]) -> dict[str, Any]:
    return {name: props[name] for name in EmulatorScheduleProvider.input_names}


def _path(props: Mapping[str, Any]) -> str:
    return f"{props['parent'].removeprefix(LOCAL_PREFIX)}/schedules/{props['scheduleId']}"


def _body(props: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the emulator takes; the engine hands whole numbers over as floats."""
    jobs = [{**job, "body": stored_job(KINDS[job["collection"]], job["body"]).fields} for job in props["jobs"]]
    return {**{name: props[name] for name in _REQUEST}, "jobs": jobs}
