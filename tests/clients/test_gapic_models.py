"""Google's generated clients of pipelines and models in their default transport, on v1 and v1beta1."""

from types import ModuleType
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.protobuf import json_format, struct_pb2

from tests.vertex_emulator.running import PARENT, RunningEmulator, pool, until
from vertex_api.pipelines import CUSTOM_TASK


def connected(client: Any, emulator: RunningEmulator) -> Any:
    """A client that finds its endpoint as Google's documentation of client_options says."""
    address = emulator.url.removeprefix("http://")
    return client(credentials=AnonymousCredentials(), client_options={"api_endpoint": address})


def model(api: ModuleType, name: str) -> Any:
    container = api.ModelContainerSpec(image_uri="localhost/serve:1", predict_route="/predict")
    return api.Model(display_name=name, container_spec=container, artifact_uri="gs://models/m", labels={"a": "b"})


def test_a_pipeline_from_creation_to_deletion(api: Any, emulator: RunningEmulator) -> None:
    client = connected(api.PipelineServiceClient, emulator)
    inputs = json_format.ParseDict({"workerPoolSpecs": [pool("print('piped')")]}, struct_pb2.Value())
    created = client.create_training_pipeline(
        parent=PARENT,
        training_pipeline=api.TrainingPipeline(
            display_name="by gapic", training_task_definition=CUSTOM_TASK, training_task_inputs=inputs
        ),
    )
    succeeded = api.PipelineState.PIPELINE_STATE_SUCCEEDED
    ended = until(
        lambda: (found := client.get_training_pipeline(name=created.name)).state == succeeded and found, "the end"
    )
    job = dict(ended.training_task_metadata)["backingCustomJob"]
    assert emulator.lines(job) == ["piped"]
    listed = client.list_training_pipelines(request={"parent": PARENT, "filter": 'display_name="by gapic"'})
    assert created.name in [each.name for each in listed]
    client.delete_training_pipeline(name=created.name).result()
    with pytest.raises(exceptions.NotFound):
        client.get_training_pipeline(name=created.name)


def test_a_model_from_upload_to_deletion(api: Any, emulator: RunningEmulator) -> None:
    client = connected(api.ModelServiceClient, emulator)
    artifact = emulator.data / "gcs/models/m/weights"
    artifact.parent.mkdir(parents=True, exist_ok=True)
    artifact.touch()
    uploaded = client.upload_model(parent=PARENT, model=model(api, "by gapic")).result()
    found = client.get_model(name=uploaded.model)
    assert (found.display_name, found.artifact_uri, dict(found.labels)) == ("by gapic", "gs://models/m", {"a": "b"})
    assert found.container_spec.predict_route == "/predict"
    listed = client.list_models(request={"parent": PARENT, "filter": 'labels.a="b"', "page_size": 1})
    assert uploaded.model in [each.name for each in listed]
    client.delete_model(name=uploaded.model).result()
    with pytest.raises(exceptions.NotFound):
        client.get_model(name=uploaded.model)


def test_a_model_is_changed_copied_and_exported(api: Any, emulator: RunningEmulator) -> None:
    client = connected(api.ModelServiceClient, emulator)
    (emulator.data / "gcs/models/m").mkdir(parents=True, exist_ok=True)
    (emulator.data / "gcs/models/m/weights").write_text("1")
    name = client.upload_model(parent=PARENT, model=model(api, "to change")).result().model
    changed = api.Model(name=name, display_name="changed")
    assert client.update_model(model=changed, update_mask={"paths": ["display_name"]}).display_name == "changed"
    client.upload_model(request={"parent": PARENT, "model": model(api, "v2"), "parent_model": name}).result()
    merged = client.merge_version_aliases(name=f"{name}@2", version_aliases=["default", "best"])
    assert set(merged.version_aliases) == {"default", "best"}
    copied = client.copy_model(parent=PARENT, source_model=f"{name}@2").result()
    assert client.get_model(name=copied.model).original_model_info.model == f"{name}@2"
    output = {"artifact_destination": {"output_uri_prefix": "gs://models/exports"}}
    exporting = client.export_model(name=f"{name}@1", output_config=output)
    exporting.result()
    folder = exporting.metadata.output_info.artifact_output_uri.removeprefix("gs://")
    assert (emulator.data / "gcs" / folder / "weights").read_text() == "1"
    client.delete_model_version(name=f"{name}@1").result()
    assert [version.version_id for version in client.list_model_versions(name=name)] == ["2"]
    with pytest.raises(exceptions.BadRequest, match="only version"):
        client.delete_model_version(name=f"{name}@2").result()
    for each in (name, copied.model):
        client.delete_model(name=each).result()


def test_operations_are_asked_for_by_name(api: Any, emulator: RunningEmulator) -> None:
    client = connected(api.TensorboardServiceClient, emulator)
    creating = client.create_tensorboard(parent=PARENT, tensorboard=api.Tensorboard(display_name="asked"))
    name = creating.operation.name
    operations = client.transport.operations_client  # which asks below /ui, whatever the version
    assert operations.get_operation(name=name).done
    assert [each.name for each in operations.list_operations(name=creating.result().name, filter_="")] == [name]
    client.delete_tensorboard(name=creating.result().name).result()
    operations.delete_operation(name=name)
    with pytest.raises(exceptions.NotFound):
        operations.get_operation(name=name)
