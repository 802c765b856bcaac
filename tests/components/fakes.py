"""A training API in memory, and a clock that only moves when someone sleeps."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pulumi
from google.protobuf import json_format
from vertex_training.jobs import covering, enforcement, moves, submission
from vertex_training.plan.plan import Plan
from vertex_training.plan.programmed import Program
from vertex_training.plan.training import Defaults
from vertex_training.runtime import holders, pacing

from vertex_api import errors
from vertex_api.names import TRAINING_PIPELINE, Kind, ResourceName
from vertex_api.schedules import ScheduleRequest


def start_new_process() -> None:
    """Start a provider process of its own, as every `pulumi up` has one."""
    covering._ledgers.clear()
    enforcement._sums.cache_clear()
    submission.submitted.cache_clear()
    pacing.current.cache_clear()
    holders.current.cache_clear()
    moves.waiting.cache_clear()


NOON = datetime.fromisoformat("2026-01-31T12:00:00Z").timestamp()
"""When the first job is created, and when a clock begins to run."""


class FakeClient:
    """`vertex_api.client.Client` over a dict of jobs by resource name.

    `calls` are the verbs in order, `sent` the bodies of what was created, `filters` those of lists. `coming` has states
    that a job takes, one at every look at it. `failing` has errors by verb. With `lost_answer_state` the answer to a
    `create` is lost, and the job has that state when it is looked for.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.sent: list[dict[str, Any]] = []
        self.filters: list[str] = []
        self.coming: dict[str, list[str]] = {}
        self.executions: dict[str, list[dict[str, Any]]] = {}
        self.logs: dict[str, list[str]] = {}
        self.failing: dict[str, Exception] = {}
        self.lost_answer_state: str | None = None
        self.before: Callable[[str], None] = lambda verb: None

    def add(self, name: str, **fields: Any) -> dict[str, Any]:
        """Puts a job there as it is, without a call."""
        self.jobs[name] = {"name": name, "createTime": f"2026-01-31T12:00:{len(self.jobs):02}Z", **fields}
        return self.jobs[name]

    def create(
        self,
        kind: Kind,
        parent: str,
        job: dict[str, Any],
        *,
        check_before: Callable[[], None],
        find_created: Callable[[], dict[str, Any] | None],
        keep_first: Callable[[dict[str, Any]], dict[str, Any]] = lambda job: job,
        allowed: Sequence[str] = (),
    ) -> dict[str, Any]:
        check_before()
        self._called("create")
        self.sent.append(job)
        # Through Google's messages, as the service's answers come: it refuses unknown fields and writes int64 as text.
        # Imported here, because that takes a second, in each process that collects tests.
        from google.cloud import aiplatform_v1

        held = job
        if not allowed:
            message = getattr(aiplatform_v1, kind.type)()
            json_format.ParseDict(job, type(message).pb(message))
            held = json_format.MessageToDict(type(message).pb(message))
        state = "PIPELINE_STATE_PENDING" if kind == TRAINING_PIPELINE else "JOB_STATE_PENDING"
        created = self.add(f"{parent}/{kind.collection}/{len(self.jobs) + 1}", **held, state=state)
        if self.lost_answer_state is None:
            return created
        created["state"] = self.lost_answer_state
        found = find_created()
        assert found is not None, "a second job would be created"
        return found

    def require(self, name: ResourceName, *, is_whole: bool = False) -> dict[str, Any]:
        self._called("get")
        return self._seen(self._there(name))

    def find(self, kind: Kind, parent: str, condition: str) -> Sequence[dict[str, Any]]:
        self._called("list")
        self.filters.append(condition)
        labels = dict(re.findall(r'labels\.(\w+)="([^"]*)"', condition))
        label_filter, _, oldest = condition.partition(" AND create_time>=")
        assert label_filter == " AND ".join(f'labels.{name}="{value}"' for name, value in labels.items()), condition
        return [
            self._seen(name)
            for name, job in list(self.jobs.items())
            if name.startswith(f"{parent}/{kind.collection}/") and labels.items() <= job.get("labels", {}).items()
            if not oldest or datetime.fromisoformat(job["createTime"]) >= datetime.fromisoformat(oldest.strip('"'))
        ]

    def cancel(self, name: ResourceName) -> None:
        self._called("cancel")
        self.jobs[self._there(name)]["state"] = "JOB_STATE_CANCELLING"

    def delete(self, name: ResourceName) -> None:
        self._called("delete")
        del self.jobs[self._there(name)]

    def list_executions(self, workflow: str) -> Sequence[dict[str, Any]]:
        self._called("list_executions")
        return self.executions.get(workflow, [])

    def log_lines(self, name: ResourceName, count: int, replica: str | None = None) -> Sequence[str]:
        self._called("log_lines")
        return self.logs.get(f"{name}/{replica}" if replica else str(name), [])[-count:]

    def _called(self, verb: str) -> None:
        self.calls.append(verb)
        self.before(verb)
        if verb in self.failing:
            raise self.failing[verb]

    def _there(self, name: ResourceName) -> str:
        if str(name) not in self.jobs:
            raise errors.NotFound(f"{name} is not there")
        return str(name)

    def _seen(self, name: str) -> dict[str, Any]:
        if self.coming.get(name):
            self.jobs[name]["state"] = self.coming[name].pop(0)
        return dict(self.jobs[name])


class Clock:
    """Stands in for the module `time`: hours pass at once, and a wait without end is found out."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return NOON + self.now - 1000.0

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds
        assert self.now < 1_000_000, "this wait does not end"

    def wait(self, seconds: float) -> bool:
        """Stand in for a wait that Ctrl-C would end."""
        self.sleep(seconds)
        return False


@dataclass
class Ground:
    """`components.Foundation` as plain values."""

    image_uri_prefix: str = "registry.test/team"
    full_location_name: str = "//local/projects/p/locations/us-central1"
    defaults: Defaults = field(default_factory=lambda: Defaults("gs://staging"))
    tensorboard_name: pulumi.Input[str] | None = None
    image_builder_config: Mapping[str, Any] | None = None
    image_dependencies: Sequence[pulumi.Resource] = ()
    job_dependencies: Sequence[pulumi.Resource] = ()
    program: Program = field(default_factory=lambda: Program(Plan({"target": "local", "project": "p"})))
    schedule_requests: dict[str, Any] = field(default_factory=dict)

    def create_schedule(
        self, name: str, request: pulumi.Input[ScheduleRequest], opts: pulumi.ResourceOptions
    ) -> pulumi.Output[Mapping[str, Any]]:
        self.schedule_requests[name] = request
        return pulumi.Output.from_input({"nextTime": "2026-11-23T01:00:00Z", "lastRun": None})
