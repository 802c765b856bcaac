"""Every method of the API's discovery documents is served, or answered as not implemented."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import googleapiclient
import pytest

from tests.vertex_emulator.running import RunningEmulator
from vertex_emulator.api.routes import is_vertex_method

LIFECYCLE = {"create", "get", "list", "cancel", "delete"}
OPERATIONS = {"get", "list", "wait", "cancel", "delete"}
MODEL_CHANGES = {"patch", "mergeVersionAliases", "copy", "export", "deleteVersion"}
CHANGEABLE = {"create", "get", "list", "patch", "delete"}
SERVED = {
    "customJobs": LIFECYCLE,
    "hyperparameterTuningJobs": LIFECYCLE,
    "trainingPipelines": LIFECYCLE,
    "models": {"upload", "get", "list", "listVersions", "delete", *MODEL_CHANGES},
    "operations": OPERATIONS,
    "customJobs.operations": OPERATIONS,
    "hyperparameterTuningJobs.operations": OPERATIONS,
    "trainingPipelines.operations": OPERATIONS,
    "models.operations": OPERATIONS,
    "tensorboards": CHANGEABLE | {"batchRead"},
    "tensorboards.operations": OPERATIONS,
    "tensorboards.experiments": CHANGEABLE | {"batchCreate", "write"},
    "tensorboards.experiments.operations": OPERATIONS,
    "tensorboards.experiments.runs": CHANGEABLE | {"batchCreate", "write"},
    "tensorboards.experiments.runs.operations": OPERATIONS,
    "tensorboards.experiments.runs.timeSeries": CHANGEABLE | {"read"},
    "tensorboards.experiments.runs.timeSeries.operations": OPERATIONS,
    "metadataStores": {"create", "get", "list", "delete"},
    "metadataStores.operations": OPERATIONS,
    "metadataStores.contexts": CHANGEABLE
    | {"purge", "addContextArtifactsAndExecutions", "addContextChildren", "removeContextChildren"}
    | {"queryContextLineageSubgraph"},
    "metadataStores.contexts.operations": OPERATIONS,
    "metadataStores.executions": CHANGEABLE | {"purge", "addExecutionEvents", "queryExecutionInputsAndOutputs"},
    "metadataStores.executions.operations": OPERATIONS,
    "metadataStores.artifacts": CHANGEABLE | {"purge", "queryArtifactLineageSubgraph"},
    "metadataStores.artifacts.operations": OPERATIONS,
}
PREFIX = "aiplatform.projects.locations."


def methods(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from node.get("methods", {}).values()
    for child in node.get("resources", {}).values():
        yield from methods(child)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_discovery_methods_are_served_or_unimplemented(version: str, shared: RunningEmulator) -> None:
    documents = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    wrong, seen = [], set()
    for method in methods(json.loads((documents / f"aiplatform.{version}.json").read_text())):
        path = re.sub(r"\{[^}]+\}", "1", method["flatPath"])
        resource, _, name = method["id"].removeprefix(PREFIX).rpartition(".")
        reply = shared.http.request(method["httpMethod"], f"{shared.url}/{path}")
        is_served = method["id"].startswith(PREFIX) and name in SERVED.get(resource, ())
        if is_served:
            seen.add((resource, name))
        if reply.status_code not in ({200, 400, 404} if is_served else {501}):
            wrong.append((method["id"], reply.status_code))
    assert wrong == []
    assert seen == {(resource, name) for resource, names in SERVED.items() for name in names}


@pytest.mark.parametrize("path", ["projects/p/locations/r/nothing", "projects/p/nothing", "nothing", "", "projects"])
def test_unknown_paths_are_not_found(path: str, shared: RunningEmulator) -> None:
    assert shared.call("GET", f"v1/{path}", expect=404)["error"]["status"] == "NOT_FOUND"


def test_methods_vertex_ai_lacks_are_not_found(shared: RunningEmulator) -> None:
    job = "v1/projects/p/locations/r/customJobs/1"
    for method, path in (("PATCH", job), ("PUT", job), ("POST", f"{job}:pause"), ("DELETE", job.rpartition("/")[0])):
        error = shared.call(method, path, expect=404)["error"]
        assert (error["status"], path in error["message"]) == ("NOT_FOUND", True)
    error = shared.call("POST", "v1/projects/p/locations/r/endpoints/1:predict", {}, expect=501)["error"]
    assert error["message"].startswith(
        "This emulator has no method POST v1/projects/p/locations/r/endpoints/1:predict ("
    )


def test_each_version_has_its_own_methods() -> None:
    upload = "projects/p/locations/r/ragCorpora/1/ragFiles:upload"
    assert is_vertex_method("POST", f"v1/{upload}")
    assert not is_vertex_method("POST", f"v1beta1/{upload}")
    skills = "projects/acme.com:p/locations/r/skills"
    assert is_vertex_method("GET", f"v1beta1/{skills}")
    assert not is_vertex_method("GET", f"v1/{skills}")
