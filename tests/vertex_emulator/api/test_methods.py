"""Every method of the API's discovery documents is served, or answered as not implemented."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import googleapiclient
import pytest

from vertex_emulator.api.methods import Methods
from vertex_emulator.database import Database
from vertex_emulator.errors import ApiError

LIFECYCLE = {"create", "get", "list", "cancel", "delete"}
OPERATIONS = {"get", "list", "wait", "cancel", "delete"}
SERVED = {
    "customJobs": LIFECYCLE,
    "hyperparameterTuningJobs": LIFECYCLE,
    "trainingPipelines": LIFECYCLE,
    "models": {"upload", "get", "list", "listVersions", "delete"},
    "operations": OPERATIONS,
    "customJobs.operations": OPERATIONS,
    "hyperparameterTuningJobs.operations": OPERATIONS,
    "trainingPipelines.operations": OPERATIONS,
    "models.operations": OPERATIONS,
}
PREFIX = "aiplatform.projects.locations."


def methods(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from node.get("methods", {}).values()
    for child in node.get("resources", {}).values():
        yield from methods(child)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_method_of_the_discovery_document_is_served_or_said_to_be_missing(version: str, tmp_path: Path) -> None:
    served = Methods.on(Database(tmp_path / "db"), tmp_path, lambda _: None)
    documents = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    wrong, seen = [], set()
    for method in methods(json.loads((documents / f"aiplatform.{version}.json").read_text())):
        path = re.sub(r"\{[^}]+\}", "1", method["flatPath"])
        if not path.startswith(f"{version}/"):
            continue  # verbs of the whole API, such as v1:evaluateInstances: no path of this emulator's
        resource, _, name = method["id"].removeprefix(PREFIX).rpartition(".")
        try:
            served.answer(method["httpMethod"], path.removeprefix(f"{version}/"), {}, {})
            status = "OK"
        except ApiError as error:
            status = error.status
        is_served = method["id"].startswith(PREFIX) and name in SERVED.get(resource, ())
        if is_served:
            seen.add((resource, name))
        expected = {"OK", "NOT_FOUND", "INVALID_ARGUMENT"} if is_served else {"UNIMPLEMENTED"}
        if status not in expected:
            wrong.append((method["id"], status))
    assert wrong == []
    assert seen == {(resource, name) for resource, names in SERVED.items() for name in names}


@pytest.mark.parametrize("path", ["projects/p/locations/r/nothing", "projects/p/nothing", "nothing", "", "projects"])
def test_what_the_api_has_not_is_not_found(path: str, tmp_path: Path) -> None:
    with pytest.raises(ApiError) as refusal:
        Methods.on(Database(tmp_path / "db"), tmp_path, lambda _: None).answer("GET", path, {}, {})
    assert refusal.value.status == "NOT_FOUND"
