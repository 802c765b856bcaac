"""Completion: waits for jobs, and holds their results."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.errors import VertexError
from vertex_api.scalars import parse_seconds

from ..errors import TrainingFailed
from ..runtime import target
from ..runtime.engine import Provider
from ..runtime.foundation import Foundation
from . import waiting
from .job import CustomJob, HyperparameterTuningJob, TrainingPipeline
from .recovery import submissions

LEFT = (
    "still running, though no longer declared: {}. Pulumi removes what is gone last, and not once something has "
    "failed: `pulumi up --continue-on-error` removes it all the same"
)
_INPUTS = ("owner", "parent", "jobs", "deadlines")


class CompletionProvider(Provider):
    """Waits while it is created or updated. When it fails the jobs stay recorded, and the next run waits again."""

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult("completion", {**props, "results": self._results(props)})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        return dynamic.UpdateResult({**news, "results": self._results(news)})

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        inputs = {name: props[name] for name in _INPUTS if name in props}
        found = waiting.look(props["parent"], props["owner"], props["jobs"])
        results = {name: waiting.result(job) for name, job in found.items()}
        return dynamic.ReadResult(id_, {**inputs, "results": results}, inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        return None

    def _results(self, props: dict[str, Any]) -> dict[str, Any]:
        deadlines = {name: parse_seconds(deadline) for name, deadline in (props.get("deadlines") or {}).items()}
        try:
            return waiting.wait(props["parent"], props["owner"], props["jobs"], deadlines)
        except TrainingFailed as error:
            if left := _undeclared(props["parent"], props["owner"]):
                raise TrainingFailed(f"{error}\n{LEFT.format(', '.join(left))}") from error
            raise


def _undeclared(parent: str, owner: str) -> list[str]:
    with suppress(VertexError):  # what has failed is more than what cannot be said beside it
        return submissions.undeclared(target.connect(parent), owner)
    return []


class Completion(dynamic.Resource, module="vertex", name="Completion"):
    """Waits for `jobs`, a map by name; `results` has for each what `waiting.result` describes.

    `deadlines` are durations ("7200s") by name: how long it waits for a job before it fails, and leaves the job alone.
    """

    results: pulumi.Output[Mapping[str, Any]]

    def __init__(
        self,
        name: str,
        jobs: Mapping[str, CustomJob | HyperparameterTuningJob | TrainingPipeline],
        *,
        foundation: Foundation,
        deadlines: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props: dict[str, Any] = {
            "jobs": {name: job.id for name, job in jobs.items()},
            "owner": f"{pulumi.get_project()}/{pulumi.get_stack()}",
            "parent": foundation.parent,
            "results": None,
        }
        if deadlines:
            props["deadlines"] = dict(deadlines)
        super().__init__(CompletionProvider(), name, props, opts)
