"""Google's own client of the API, unmodified."""

import time

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform_v1
from google.cloud.aiplatform_v1.services.job_service.transports.rest import JobServiceRestTransport

from tests.clients.conftest import IDLE
from tests.emulator.running import IMAGE, PARENT, RunningEmulator, until

SUCCEEDED = aiplatform_v1.JobState.JOB_STATE_SUCCEEDED


@pytest.fixture
def client(emulator: RunningEmulator) -> aiplatform_v1.JobServiceClient:
    host = emulator.url.removeprefix("http://")
    transport = JobServiceRestTransport(host=host, url_scheme="http", credentials=AnonymousCredentials())
    return aiplatform_v1.JobServiceClient(transport=transport)


def job(name: str, script: str = "print('hi')") -> aiplatform_v1.CustomJob:
    container = aiplatform_v1.ContainerSpec(image_uri=IMAGE, command=["python3", "-c", script])
    machine = aiplatform_v1.MachineSpec(machine_type="n1-standard-4")
    pool = aiplatform_v1.WorkerPoolSpec(machine_spec=machine, replica_count=1, container_spec=container)
    spec = aiplatform_v1.CustomJobSpec(worker_pool_specs=[pool])
    return aiplatform_v1.CustomJob(display_name=name, job_spec=spec, labels={"client": "gapic"})


def test_a_custom_job_from_creation_to_deletion(client: aiplatform_v1.JobServiceClient) -> None:
    created = client.create_custom_job(parent=PARENT, custom_job=job("by gapic"))
    assert created.state == aiplatform_v1.JobState.JOB_STATE_QUEUED
    ended = until(lambda: (found := client.get_custom_job(name=created.name)).state == SUCCEEDED and found, "the end")
    assert ended.job_spec == created.job_spec
    assert ended.end_time > ended.start_time
    listed = client.list_custom_jobs(request={"parent": PARENT, "filter": 'labels.client="gapic"', "page_size": 1})
    assert created.name in [found.name for found in listed]
    operation = client.delete_custom_job(name=created.name)
    operation.result(timeout=10)
    with pytest.raises(exceptions.NotFound, match=created.name):
        client.get_custom_job(name=created.name)


def test_cancelling_and_refusals(client: aiplatform_v1.JobServiceClient) -> None:
    created = client.create_custom_job(parent=PARENT, custom_job=job("to be cancelled", IDLE))
    with pytest.raises(exceptions.BadRequest, match="cancel it"):
        client.delete_custom_job(name=created.name)
    client.cancel_custom_job(name=created.name)
    cancelled = aiplatform_v1.JobState.JOB_STATE_CANCELLED
    ended = until(lambda: (found := client.get_custom_job(name=created.name)).state == cancelled and found, "the end")
    assert ended.error.code == 1
    with pytest.raises(exceptions.BadRequest, match="Field: job_spec; Message: is required"):
        client.create_custom_job(parent=PARENT, custom_job=aiplatform_v1.CustomJob(display_name="empty"))


def test_a_tuning_job_with_its_trials(client: aiplatform_v1.JobServiceClient) -> None:
    script = (
        "import json, os, time; n = int(next(a for a in __import__('sys').argv if a.startswith('--n=')).split('=')[1]);"
        "entry = {'timestamp': time.time(), 'trial': '1', 'loss': str(n), 'global_step': '1', 'checkpoint_path': ''};"
        "open(os.environ['CLOUD_ML_HP_METRIC_FILE'], 'w').write(json.dumps(entry) + '\\n')"
    )
    study = aiplatform_v1.StudySpec(
        metrics=[{"metric_id": "loss", "goal": aiplatform_v1.StudySpec.MetricSpec.GoalType.MINIMIZE}],
        parameters=[{"parameter_id": "n", "integer_value_spec": {"min_value": 1, "max_value": 9}}],
        algorithm=aiplatform_v1.StudySpec.Algorithm.RANDOM_SEARCH,
    )
    created = client.create_hyperparameter_tuning_job(
        parent=PARENT,
        hyperparameter_tuning_job=aiplatform_v1.HyperparameterTuningJob(
            display_name="tuned by gapic",
            study_spec=study,
            max_trial_count=2,
            parallel_trial_count=2,
            trial_job_spec=job("", script).job_spec,
        ),
    )
    deadline = time.monotonic() + 60
    while (found := client.get_hyperparameter_tuning_job(name=created.name)).state != SUCCEEDED:
        assert time.monotonic() < deadline, found
    assert [trial.state.name for trial in found.trials] == ["SUCCEEDED", "SUCCEEDED"]
    for trial in found.trials:
        assert trial.final_measurement.metrics[0].value == trial.parameters[0].value
