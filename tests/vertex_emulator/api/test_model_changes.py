"""Patch, aliases, deletion of a version, copy and export of models, and the errors of each."""

import os
from typing import Any

import pytest

from tests.vertex_emulator.running import PARENT, RunningEmulator


@pytest.fixture
def versioned(shared: RunningEmulator) -> str:
    """The name of a new model with two versions, the first of which is the default."""
    folder = shared.data / "gcs/model-files/one"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    body = {"displayName": "one", "labels": {"a": "b"}, "artifactUri": "gs://model-files/one"}
    name = shared.call("POST", f"v1/{PARENT}/models:upload", {"model": body})["response"]["model"]
    second = {"parentModel": name, "model": {"displayName": "two", "versionAliases": ["blue"]}}
    shared.call("POST", f"v1/{PARENT}/models:upload", second)
    return str(name)


def refused(emulator: RunningEmulator, method: str, path: str, body: Any = None) -> tuple[str, str]:
    """Status and message of the answer with HTTP status 400 or 404."""
    reply = emulator.http.request(method, f"{emulator.url}/v1/{path}", json=body, timeout=30)
    assert reply.status_code in (400, 404), reply.text
    return reply.json()["error"]["status"], reply.json()["error"]["message"]


def test_a_patch_changes_the_masked_fields_only(shared: RunningEmulator, versioned: str) -> None:
    body = {"displayName": "new", "description": "not in the mask", "labels": {"c": "d"}}
    patched = shared.call("PATCH", f"v1/{versioned}?updateMask=display_name,labels", body)
    assert (patched["displayName"], patched["labels"], "description" in patched) == ("new", {"c": "d"}, False)
    assert shared.get(f"{versioned}@2")["displayName"] == "new"
    shared.call("PATCH", f"v1/{versioned}@2?updateMask=versionDescription,labels", {"versionDescription": "second"})
    assert shared.get(f"{versioned}@blue")["versionDescription"] == "second"
    assert (shared.get(versioned)["labels"], "labels" in shared.get(f"{versioned}@2")) == ({"c": "d"}, False)


@pytest.mark.parametrize(
    ("version", "mask", "body", "status", "message"),
    [
        ("", "", {}, "INVALID_ARGUMENT", "updateMask: is required"),
        ("", "display_nam", {}, "INVALID_ARGUMENT", 'updateMask: "displayNam" is not a field'),
        (
            "",
            "container_spec",
            {},
            "INVALID_ARGUMENT",
            "update_mask: containerSpec cannot be changed; only displayName,",
        ),
        ("", "version_description", {}, "FAILED_PRECONDITION", "a field of a version; update models/ID@VERSION"),
        ("@1", "display_name", {"displayName": "x"}, "FAILED_PRECONDITION", "a field of a model; update models/ID"),
        ("", "display_name", {"displayName": ""}, "INVALID_ARGUMENT", "display_name"),
        ("", "display_name", {"displayName": "x", "bogus": 1}, "INVALID_ARGUMENT", "bogus"),
        ("", "description", {"description": "x", "etag": "5"}, "FAILED_PRECONDITION", "etag: the model has changed"),
        ("@9", "version_description", {}, "NOT_FOUND", '@9" does not exist'),
    ],
)
def test_a_patch_that_cannot_be_is_refused_by_field(
    shared: RunningEmulator, versioned: str, version: str, mask: str, body: Any, status: str, message: str
) -> None:
    before = shared.get(versioned)
    found = refused(shared, "PATCH", f"{versioned}{version}?updateMask={mask}", body)
    assert (found[0], message in found[1]) == (status, True), found
    assert shared.get(versioned) == before


def test_aliases_move_between_versions_and_are_removed(shared: RunningEmulator, versioned: str) -> None:
    merged = shared.call("POST", f"v1/{versioned}@1:mergeVersionAliases", {"versionAliases": ["blue", "green"]})
    assert (merged["versionId"], set(merged["versionAliases"])) == ("1", {"default", "blue", "green"})
    assert "versionAliases" not in shared.get(f"{versioned}@2")
    shared.call("POST", f"v1/{versioned}@2:mergeVersionAliases", {"version_aliases": ["default"]})
    shared.call("POST", f"v1/{versioned}@1:mergeVersionAliases", {"versionAliases": ["-green", "-unknown"]})
    assert (shared.get(versioned)["versionId"], shared.get(f"{versioned}@1")["versionAliases"]) == ("2", ["blue"])


@pytest.mark.parametrize(
    ("version", "aliases", "status", "message"),
    [
        ("", ["green"], "INVALID_ARGUMENT", "must name a version, as models/ID@VERSION"),
        ("@1", ["-default"], "FAILED_PRECONDITION", '"default" cannot be removed; add it to another version'),
        ("@1", ["1st"], "INVALID_ARGUMENT", "version_aliases[0]"),
        ("@1", [], "INVALID_ARGUMENT", "version_aliases"),
        ("@9", ["green"], "NOT_FOUND", '@9" does not exist'),
    ],
)
def test_impossible_aliases_are_refused(
    shared: RunningEmulator, versioned: str, version: str, aliases: list[str], status: str, message: str
) -> None:
    found = refused(shared, "POST", f"{versioned}{version}:mergeVersionAliases", {"versionAliases": aliases})
    assert (found[0], message in found[1]) == (status, True), found


def test_all_versions_but_the_default_can_be_deleted(shared: RunningEmulator, versioned: str) -> None:
    assert refused(shared, "DELETE", f"{versioned}@1:deleteVersion") == (
        "FAILED_PRECONDITION",
        f'{versioned}@1 is the default version: give the alias "default" to another one first.',
    )
    assert refused(shared, "DELETE", f"{versioned}:deleteVersion")[0] == "INVALID_ARGUMENT"
    operation = shared.call("DELETE", f"v1/{versioned}@blue:deleteVersion")
    assert (operation["done"], operation["metadata"]["@type"].rpartition(".")[2]) == (True, "DeleteOperationMetadata")
    assert refused(shared, "GET", f"{versioned}@2")[0] == "NOT_FOUND"
    status, message = refused(shared, "DELETE", f"{versioned}@1:deleteVersion")
    assert (status, "the model's only version: delete the model" in message) == ("FAILED_PRECONDITION", True)


def test_a_copy_names_its_original(shared: RunningEmulator, versioned: str) -> None:
    parent = PARENT.replace("us-central1", "europe-west4")
    body = {"sourceModel": f"{versioned}@1", "modelId": f"copy{versioned.rpartition('/')[2]}"}
    response = shared.call("POST", f"v1/{parent}/models:copy", body)["response"]
    assert response["@type"].endswith("CopyModelResponse")
    copied = shared.get(response["model"])
    assert (copied["displayName"], copied["labels"], copied["versionId"]) == ("one", {"a": "b"}, "1")
    assert copied["originalModelInfo"] == {"model": f"{versioned}@1"}
    assert copied["modelSourceInfo"] == {"sourceType": "CUSTOM", "copy": True}
    again = shared.call("POST", f"v1/{parent}/models:copy", {**body, "modelId": "", "parentModel": response["model"]})
    assert again["response"]["modelVersionId"] == "2"
    shared.call("POST", f"v1/{parent}/models:copy", body, expect=409)
    for source, status in (("models/1", "INVALID_ARGUMENT"), (f"{versioned}@9", "NOT_FOUND")):
        assert refused(shared, "POST", f"{parent}/models:copy", {"sourceModel": source})[0] == status
    elsewhere = "projects/another/locations/us-central1/models:copy"
    assert "is no model of this project" in refused(shared, "POST", elsewhere, {"sourceModel": versioned})[1]


def test_an_export_copies_the_files_of_the_model(shared: RunningEmulator, versioned: str) -> None:
    folder = shared.data / "gcs/model-files/one"
    (folder / "variables").mkdir(exist_ok=True)
    (folder / "variables/0").write_bytes(b"weights")
    secret = shared.data.parent / "secret-of-models"
    secret.write_text("of the host")
    (folder / "link").unlink(missing_ok=True)
    (folder / "link").symlink_to(secret)
    destination = {"outputConfig": {"artifactDestination": {"outputUriPrefix": "gs://model-files/one/exports"}}}
    operation = shared.call("POST", f"v1beta1/{versioned}:export", destination)
    uri = operation["metadata"]["outputInfo"]["artifactOutputUri"]
    assert uri.startswith("gs://model-files/one/exports/model-export-one-")
    assert shared.call("GET", f"v1beta1/{operation['name']}") == operation
    exported = shared.data / "gcs" / uri.removeprefix("gs://")
    files = {str(path.relative_to(exported)): path.read_bytes() for path in exported.rglob("*") if path.is_file()}
    assert files == {"saved_model.pb": b"graph", "variables/0": b"weights"}
    assert [path.name for path in (shared.data / "uploads").glob("*.partial")] == []


@pytest.mark.parametrize(
    ("version", "config", "status", "message"),
    [
        ("", {}, "INVALID_ARGUMENT", "output_config.artifact_destination; Message: is required"),
        ("", {"imageDestination": {"outputUri": "r/i"}}, "INVALID_ARGUMENT", "output_config.image_destination"),
        ("", {"exportFormatId": "tf-js"}, "INVALID_ARGUMENT", '"tf-js" must be "custom-trained"'),
        ("", {"artifactDestination": {"outputUriPrefix": "/tmp"}}, "INVALID_ARGUMENT", "output_uri_prefix"),
        ("", {"artifactDestination": {"outputUriPrefix": "gs://x/../y"}}, "INVALID_ARGUMENT", ""),
        ("@2", {"artifactDestination": {"outputUriPrefix": "gs://out"}}, "FAILED_PRECONDITION", "has no artifactUri"),
    ],
)
def test_an_impossible_export_is_refused_by_field(
    shared: RunningEmulator, versioned: str, version: str, config: Any, status: str, message: str
) -> None:
    found = refused(shared, "POST", f"{versioned}{version}:export", {"outputConfig": config})
    assert (found[0], message in found[1]) == (status, True), found


def test_an_export_beyond_the_disk_or_of_nothing_is_refused(shared: RunningEmulator) -> None:
    folder = shared.data / "gcs/model-files/endless"
    folder.mkdir(parents=True)
    (folder / "zeros").touch()
    body = {"displayName": "endless", "artifactUri": "gs://model-files/endless"}
    name = shared.call("POST", f"v1/{PARENT}/models:upload", {"model": body})["response"]["model"]
    os.truncate(folder / "zeros", 1 << 43)
    destination = {"outputConfig": {"artifactDestination": {"outputUriPrefix": "gs://exports"}}}
    error = shared.call("POST", f"v1/{name}:export", destination, expect=413)["error"]
    assert "needs 8796093022208" in error["message"]
    (folder / "zeros").unlink()
    assert "There are no files in gs://model-files/endless" in refused(shared, "POST", f"{name}:export", destination)[1]
