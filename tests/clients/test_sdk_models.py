"""Google's SDK changes models, copies and exports them, and manages their versions and aliases."""

from typing import Any

import pytest
from google.api_core import exceptions

from tests.vertex_emulator.running import RunningEmulator

IMAGE = "localhost/serve:1"


def test_versions_and_aliases_are_managed_by_the_registry(aiplatform: Any) -> None:
    model = aiplatform.Model.upload(display_name="registered", serving_container_image_uri=IMAGE)
    second = aiplatform.Model.upload(
        display_name="registered",
        serving_container_image_uri=IMAGE,
        parent_model=model.resource_name,
        is_default_version=False,
        version_aliases=["candidate"],
    )
    model.update(display_name="renamed", description="by the SDK", labels={"team": "vision"})
    assert (model.display_name, model.description, model.labels) == ("renamed", "by the SDK", {"team": "vision"})
    registry = second.versioning_registry
    registry.update_version("candidate", labels={"stage": "test"}, version_description="the second")
    registry.add_version_aliases(["production"], "2")
    registry.remove_version_aliases(["candidate"], "2")
    found = registry.get_version_info("production")
    assert (found.version_id, found.version_description, found.version_aliases) == ("2", "the second", ["production"])
    registry.add_version_aliases(["default"], "2")
    registry.delete_version("1")
    assert [version.version_id for version in registry.list_versions()] == ["2"]
    with pytest.raises(exceptions.BadRequest, match="only version"):
        registry.delete_version("2")
    second.delete()


def test_models_are_copied_and_exported(aiplatform: Any, emulator: RunningEmulator) -> None:
    files = emulator.data / "gcs/sdk-exports/model"
    files.mkdir(parents=True)
    (files / "model.joblib").write_bytes(b"trained")
    model = aiplatform.Model.upload(
        display_name="exported", serving_container_image_uri=IMAGE, artifact_uri="gs://sdk-exports/model"
    )
    copied = model.copy(destination_location="europe-west4", destination_model_id="a-copy")
    assert (copied.display_name, copied.location, copied.version_id) == ("exported", "europe-west4", "1")
    assert copied.gca_resource.model_source_info.copy
    info = model.export_model(export_format_id="custom-trained", artifact_destination="gs://sdk-exports/out")
    folder = emulator.data / "gcs" / info["artifactOutputUri"].removeprefix("gs://")
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("model.joblib", b"trained")]
    for each in (copied, model):
        each.delete()
