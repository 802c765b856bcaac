"""Models and operations over HTTP."""

import os
from typing import Any

import pytest

from tests.vertex_emulator.running import PARENT, RunningEmulator
from vertex_emulator.names import project_number

NAME = f"projects/{project_number('my-project')}/locations/us-central1"


def model(name: str = "a model", **fields: Any) -> dict[str, Any]:
    return {"displayName": name, "containerSpec": {"imageUri": "serve:1"}, **fields}


def upload(emulator: RunningEmulator, body: dict[str, Any], parent: str = PARENT, **request: Any) -> dict[str, Any]:
    found: dict[str, Any] = emulator.call("POST", f"v1/{parent}/models:upload", {"model": body, **request})
    return found


def test_upload_operation_names_model_and_version(shared: RunningEmulator) -> None:
    operation = upload(shared, model(), modelId="uploaded")
    assert operation["done"] is True
    assert operation["response"] == {
        "@type": "type.googleapis.com/google.cloud.aiplatform.v1.UploadModelResponse",
        "model": f"{NAME}/models/uploaded",
        "modelVersionId": "1",
    }
    assert operation["metadata"]["@type"].endswith(".UploadModelOperationMetadata")
    assert shared.get(operation["name"]) == operation


def test_model_is_stored_in_canonical_form(shared: RunningEmulator) -> None:
    sent = {
        "display_name": "kept",
        "description": "é",
        "labels": {"team": "a"},
        "artifact_uri": "gs://stored/m",
        "container_spec": {
            "image_uri": "serve:1",
            "args": ["--x"],
            "env": [{"name": "A", "value": "b"}],
            "ports": [{"container_port": 8080}],
            "predict_route": "/p",
            "shared_memory_size_mb": 16,
        },
        "metadata": {"any": [1, "2", None]},
        "name": "projects/x/locations/y/models/ignored",
        "version_description": "first",
    }
    (shared.data / "gcs/stored/m").mkdir(parents=True)
    error = shared.call("POST", f"v1/{PARENT}/models:upload", {"model": sent}, expect=404)["error"]
    assert error["message"].startswith('There are no files in directory "gs://stored/m". Please check')
    (shared.data / "gcs/stored/m/weights").touch()
    name = upload(shared, sent)["response"]["model"]
    kept = shared.get(name)
    assert kept["containerSpec"] == {
        "imageUri": "serve:1",
        "args": ["--x"],
        "env": [{"name": "A", "value": "b"}],
        "ports": [{"containerPort": 8080}],
        "predictRoute": "/p",
        "sharedMemorySizeMb": "16",
    }
    assert {field: kept[field] for field in ("displayName", "description", "labels", "artifactUri")} == {
        "displayName": "kept",
        "description": "é",
        "labels": {"team": "a"},
        "artifactUri": "gs://stored/m",
    }
    assert kept["name"] == name
    assert kept["createTime"] == kept["updateTime"] == kept["versionCreateTime"] == kept["versionUpdateTime"]


def test_versions_are_found_by_number_and_alias(shared: RunningEmulator) -> None:
    first = upload(shared, model("one", versionAliases=["blue"]), modelId="versioned")["response"]["model"]
    second = upload(shared, model("two", versionAliases=["green", "blue"]), parentModel=first)["response"]
    assert (second["model"], second["modelVersionId"]) == (first, "2")
    assert shared.get(first)["displayName"] == "one"
    assert [shared.get(f"{first}@{each}")["displayName"] for each in ("1", "2", "blue", "green", "default")] == [
        "one",
        "two",
        "two",
        "two",
        "one",
    ]
    upload(shared, model("three", versionAliases=["default"]), parentModel=f"{first}@1")
    assert shared.get(first)["displayName"] == "three"
    versions = shared.call("GET", f"v1/{first}:listVersions")["models"]
    assert [(each["versionId"], each.get("versionAliases", [])) for each in versions] == [
        ("1", []),
        ("2", ["green", "blue"]),
        ("3", ["default"]),
    ]
    for unknown in ("4", "red", "0"):
        shared.call("GET", f"v1/{first}@{unknown}", expect=404)


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        ({}, 400, "model"),
        ({"model": {}}, 400, "model.display_name"),
        ({"model": model(bogus=1)}, 400, "model.bogus"),
        ({"model": model("x" * 129)}, 400, "model.display_name"),
        ({"model": model(labels={"A": "b"})}, 400, "model.labels"),
        ({"model": model(versionAliases=["1"])}, 400, "model.version_aliases[0]"),
        ({"model": model(), "modelId": "1x"}, 400, "model_id"),
        ({"model": model(), "modelId": "a/b"}, 400, "model_id"),
        ({"model": model(), "modelId": "a", "parentModel": f"{PARENT}/models/b"}, 400, "model_id"),
        ({"model": model(), "parentModel": f"{PARENT}/models/none"}, 404, "models/none"),
        ({"model": model(), "parentModel": "none"}, 404, "none"),
        ({"model": model(), "bogus": 1}, 400, "bogus"),
    ],
)
def test_rejected_uploads_leave_no_model(
    shared: RunningEmulator, request_: dict[str, Any], code: int, text: str
) -> None:
    parent = "projects/refused/locations/us-central1"
    error = shared.call("POST", f"v1/{parent}/models:upload", request_, expect=code)["error"]
    assert text in error["message"]
    if code == 400:
        assert text in [found["field"] for found in error["details"][0]["fieldViolations"]]
    assert shared.call("GET", f"v1/{parent}/models") == {}


def test_an_id_that_is_taken_is_refused(shared: RunningEmulator) -> None:
    upload(shared, model(), modelId="taken")
    error = shared.call("POST", f"v1/{PARENT}/models:upload", {"model": model(), "modelId": "taken"}, expect=409)
    assert error["error"]["status"] == "ALREADY_EXISTS"
    upload(shared, model(), parent="projects/my-project/locations/europe-west1", modelId="taken")


def test_models_are_listed_filtered_ordered_and_paged(shared: RunningEmulator) -> None:
    parent = "projects/shelf/locations/us-central1"
    for name, team in (("b", "x"), ("a", "y"), ("c", "x"), ("a", "z")):
        upload(shared, model(name, labels={"team": team}), parent=parent, modelId=f"{name}-{team}")

    def found(**query: Any) -> list[str]:
        ids, token = [], ""
        while True:
            reply = shared.call("GET", f"v1/{parent}/models", params={**query, "pageToken": token})
            ids += [each["name"].rpartition("/")[2] for each in reply.get("models", [])]
            token = reply.get("nextPageToken", "")
            if not token:
                return ids

    assert found() == ["a-z", "c-x", "a-y", "b-x"]
    assert found(pageSize=1) == found()
    assert found(orderBy="display_name, create_time desc", pageSize=2) == ["a-z", "a-y", "b-x", "c-x"]
    assert found(orderBy="displayName desc") == ["c-x", "b-x", "a-z", "a-y"]
    assert found(filter='displayName="a"') == ["a-z", "a-y"]
    assert found(filter="model=c-x") == ["c-x"]
    assert found(filter="labels.team=x AND NOT display_name=b") == ["c-x"]
    assert found(filter="-labels.team=x") == ["a-z", "a-y"]
    assert len(found(filter="labels:team")) == 4
    masked = shared.call("GET", f"v1/{parent}/models", params={"readMask": "container_spec.image_uri,name"})["models"]
    assert masked[0] == {"name": masked[0]["name"], "containerSpec": {"imageUri": "serve:1"}}
    for bad in ({"orderBy": "bogus"}, {"filter": "state=x"}, {"readMask": "jobSpec"}, {"pageToken": "x"}):
        shared.call("GET", f"v1/{parent}/models", params=bad, expect=400)


def test_deletion_removes_all_versions(shared: RunningEmulator) -> None:
    name = upload(shared, model(), modelId="gone")["response"]["model"]
    upload(shared, model(), parentModel=name)
    operation = shared.call("DELETE", f"v1/{name}")
    assert operation["response"] == {"@type": "type.googleapis.com/google.protobuf.Empty"}
    for path in (name, f"{name}@1", f"{name}@2"):
        shared.call("GET", f"v1/{path}", expect=404)
    shared.call("DELETE", f"v1/{name}", expect=404)
    assert upload(shared, model(), modelId="gone")["response"]["modelVersionId"] == "1"


def test_models_and_their_operations_outlive_a_kill(own: RunningEmulator) -> None:
    operation = upload(own, model(versionAliases=["blue"]), modelId="kept")
    before = own.get(f"{NAME}/models/kept@blue")
    own.end(9)
    own.start()
    assert own.get(f"{NAME}/models/kept@blue") == before
    assert own.get(operation["name"]) == operation


def test_operations_live_until_deleted(shared: RunningEmulator) -> None:
    parent = "projects/acting/locations/us-central1"
    names = [upload(shared, model(), parent=parent)["name"] for _ in range(3)]
    below = names[0].rpartition("/operations/")[0]
    assert [each["name"] for each in shared.call("GET", f"v1/{below}/operations")["operations"]] == [names[0]]
    seen: list[str] = []
    token = ""
    while True:
        page = shared.call("GET", f"v1/{parent}/operations", params={"pageSize": 2, "pageToken": token})
        seen += [each["name"] for each in page["operations"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert seen == names[::-1]
    assert shared.call("GET", f"v1/{parent}/operations", params={"filter": "done=false"}) == {}
    assert len(shared.call("GET", f"v1/{parent}/operations", params={"filter": "done=true"})["operations"]) == 3
    shared.call("GET", f"v1/{parent}/operations", params={"filter": "metadata.x=1"}, expect=400)
    shared.call("GET", f"v1/{parent}/operations", params={"bogus": "1"}, expect=400)
    assert shared.call("POST", f"v1/{names[0]}:wait?timeout=1s", {})["done"] is True
    assert shared.call("POST", f"v1/{names[0]}:cancel", {}) == {}
    assert shared.call("DELETE", f"v1/{names[0]}") == {}
    for method, suffix in (("GET", ""), ("POST", ":wait"), ("POST", ":cancel"), ("DELETE", "")):
        shared.call(method, f"v1/{names[0]}{suffix}", expect=404)


SENT = {
    "metadataSchemaUri": "gs://b/schema.yaml",
    "pipelineJob": "projects/p/locations/us-central1/pipelineJobs/1",
    "defaultCheckpointId": "3",
    "predictSchemata": {"instanceSchemaUri": "gs://b/i.yaml", "parametersSchemaUri": "gs://b/p.yaml"},
    "explanationSpec": {"parameters": {"sampledShapleyAttribution": {"pathCount": 5}, "topK": 2}},
    "baseModelSource": {"modelGardenSource": {"publicModelName": "publishers/google/models/m"}},
    "dataStats": {"trainingDataItemsCount": "7"},
    "encryptionSpec": {"kmsKeyName": "projects/acme-dev/locations/us-central1/keyRings/k/cryptoKeys/c"},
}
NEVER = (
    "originalModelInfo",
    "checkpoints",
    "deployedModels",
    "supportedExportFormats",
    "metadataArtifact",
    "satisfiesPzi",
    "satisfiesPzs",
)


def test_inert_fields_are_kept_as_sent(
    shared: RunningEmulator,
) -> None:
    operation = upload(shared, model(**SENT), serviceAccount="trainer@p.iam.gserviceaccount.com")
    kept = shared.get(operation["response"]["model"])
    assert {field: kept.get(field) for field in SENT} == SENT
    assert [field for field in NEVER if field in kept] == []
    assert kept["modelSourceInfo"] == {"sourceType": "CUSTOM"}


def test_etag_changes_with_each_version(shared: RunningEmulator) -> None:
    first = upload(shared, model(etag="any"), modelId="tagged")["response"]["model"]
    before = shared.get(first)["etag"]
    upload(shared, model(etag="any"), parentModel=first)
    assert before != "any"
    assert shared.get(f"{first}@2")["etag"] != before


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
    reply = emulator.http.request(method, f"{emulator.url}/v1/{path}", json=body)
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
def test_impossible_patches_are_refused_by_field(
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


def test_only_the_default_version_stays(shared: RunningEmulator, versioned: str) -> None:
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


def test_exports_copy_the_model_files(shared: RunningEmulator, versioned: str) -> None:
    folder = shared.data / "gcs/model-files/one"
    (folder / "variables").mkdir(exist_ok=True)
    (folder / "variables/0").write_bytes(b"weights")
    secret = shared.data.parent / "secret-of-models"
    secret.write_text("of the host")
    (folder / "link").unlink(missing_ok=True)
    (folder / "link").symlink_to(secret)
    destination = {"outputConfig": {"artifactDestination": {"outputUriPrefix": "gs://model-files/one/exports"}}}
    shared.call("PATCH", f"v1/{versioned}?updateMask=display_name", {"displayName": "of a / 1"})
    operation = shared.call("POST", f"v1beta1/{versioned}:export", destination)
    uri = operation["metadata"]["outputInfo"]["artifactOutputUri"]
    assert uri.startswith("gs://model-files/one/exports/model-export-of_a_1-")
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


def test_exports_need_files_and_room(shared: RunningEmulator) -> None:
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
