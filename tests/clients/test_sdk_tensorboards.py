"""Google's SDK (`google.cloud.aiplatform`) on tensorboards: curves of a trainer, jobs that refer to a tensorboard."""

import base64
from typing import Any

import pytest
from google.api_core import exceptions

from tests.clients.test_sdk import snake
from tests.vertex_emulator.events import plain, records
from tests.vertex_emulator.running import RunningEmulator

ACCOUNT = "trainer@my-project.iam.gserviceaccount.com"


def test_a_tensorboard_from_creation_to_deletion(aiplatform: Any) -> None:
    board = aiplatform.Tensorboard.create(display_name="sdk board", description="one", labels={"a": "b"})
    board.update(display_name="changed", description="two")
    found = aiplatform.Tensorboard(board.resource_name)
    assert (found.display_name, found.gca_resource.description, found.labels) == ("changed", "two", {"a": "b"})
    (listed,) = aiplatform.Tensorboard.list(filter='labels.a="b"')
    assert listed.resource_name == board.resource_name
    board.delete()
    with pytest.raises(exceptions.NotFound, match="The Tensorboard does not exist"):
        aiplatform.Tensorboard(board.resource_name)


def test_curves_of_a_run_are_written_and_read(aiplatform: Any) -> None:
    board = aiplatform.Tensorboard.create(display_name="curves")
    experiment = aiplatform.TensorboardExperiment.create("digits", tensorboard_name=board.resource_name)
    run = aiplatform.TensorboardRun.create("run-1", tensorboard_experiment_name=experiment.resource_name)
    run.create_tensorboard_time_series(display_name="loss")
    for step, loss in enumerate((0.5, 0.25, 0.125)):
        run.write_tensorboard_scalar_data({"loss": loss}, step=step)
    run.write_tensorboard_scalar_data({"loss": 0.2}, step=1)
    points = run.read_time_series_data()["loss"].values
    assert [(point.step, point.scalar.value) for point in points] == [(0, 0.5), (1, 0.2), (2, 0.125)]
    (series,) = aiplatform.TensorboardTimeSeries.list(tensorboard_run_name=run.resource_name)
    assert series.gca_resource.metadata.max_step == 2
    assert [each.resource_name for each in aiplatform.TensorboardRun.list(experiment.resource_name)] == [
        run.resource_name
    ]
    experiment.delete()
    with pytest.raises(exceptions.NotFound, match=r"TensorboardExperiment projects/.* is not found"):
        aiplatform.TensorboardRun(run.resource_name)
    board.delete()


def test_the_default_tensorboard_is_the_newest(aiplatform: Any) -> None:
    first, second = (aiplatform.Tensorboard.create(display_name=name, is_default=True) for name in ("first", "second"))
    found = aiplatform.Tensorboard.list(filter="is_default=true")
    assert [each.resource_name for each in found] == [second.resource_name]
    aiplatform.init(experiment_tensorboard=first)
    for board in (first, second):
        board.delete()


def test_a_job_uploads_its_curves(aiplatform: Any) -> None:
    content = base64.b64encode(records([plain("loss", step, 1 / (step + 1)) for step in range(4)])).decode()
    script = (
        "import base64, os, sys; folder = os.environ['AIP_TENSORBOARD_LOG_DIR'].replace('gs://', '/gcs/') + 'train';"
        "os.makedirs(folder); open(folder + '/events.out.tfevents.1', 'wb').write(base64.b64decode(sys.argv[1]))"
    )
    board = aiplatform.Tensorboard.create(display_name="of a job")
    pools = [snake(script, args=[content])]
    job = aiplatform.CustomJob(display_name="sdk-curves", worker_pool_specs=pools, base_output_dir="gs://sdk/curves")
    job.run(service_account=ACCOUNT, tensorboard=board.resource_name)
    experiment = aiplatform.TensorboardExperiment(f"{board.resource_name}/experiments/{job.name}")
    assert experiment.display_name == "sdk-curves"
    (run,) = aiplatform.TensorboardRun.list(experiment.resource_name)
    points = run.read_time_series_data()["loss"].values
    assert (run.display_name, [point.scalar.value for point in points]) == (
        "train",
        [1, 0.5, pytest.approx(1 / 3), 0.25],
    )
    board.delete()


def test_a_job_must_name_a_tensorboard_that_exists(aiplatform: Any, emulator: RunningEmulator) -> None:
    board = aiplatform.Tensorboard.create(display_name="of jobs")
    job = aiplatform.CustomJob(
        display_name="sdk-board", worker_pool_specs=[snake("pass")], base_output_dir="gs://sdk/b"
    )
    job.submit(service_account=ACCOUNT, tensorboard=board.resource_name)
    assert emulator.get(job.resource_name)["jobSpec"]["tensorboard"] == board.resource_name
    missing = f"{board.resource_name}0"
    job = aiplatform.CustomJob(
        display_name="sdk-board", worker_pool_specs=[snake("pass")], base_output_dir="gs://sdk/b"
    )
    with pytest.raises(exceptions.NotFound, match=f'The Tensorboard "{missing}" does not exist'):
        job.submit(service_account=ACCOUNT, tensorboard=missing)
    board.delete()
