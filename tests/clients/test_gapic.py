"""Google's generated clients of jobs over REST, on v1 and v1beta1."""

import time
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials

from tests.clients.conftest import IDLE
from tests.vertex_emulator.running import IMAGE, PARENT, RunningEmulator, until


@pytest.fixture
def client(api: Any, emulator: RunningEmulator) -> Any:
    """A client whose transport is told the host and the scheme."""
    transport = api.JobServiceClient.get_transport_class("rest")
    host = emulator.url.removeprefix("http://")
    return api.JobServiceClient(transport=transport(host=host, url_scheme="http", credentials=AnonymousCredentials()))


def job(api: Any, name: str, script: str = "print('hi')") -> Any:
    container = api.ContainerSpec(image_uri=IMAGE, command=["python3", "-c", script])
    machine = api.MachineSpec(machine_type="n1-standard-4")
    pool = api.WorkerPoolSpec(machine_spec=machine, replica_count=1, container_spec=container)
    spec = api.CustomJobSpec(worker_pool_specs=[pool])
    return api.CustomJob(display_name=name, job_spec=spec, labels={"client": "gapic"})


def test_a_custom_job_from_creation_to_deletion(api: Any, client: Any) -> None:
    created = client.create_custom_job(parent=PARENT, custom_job=job(api, "by gapic"))
    assert created.state == api.JobState.JOB_STATE_PENDING
    ended = until(
        lambda: (found := client.get_custom_job(name=created.name)).state == api.JobState.JOB_STATE_SUCCEEDED and found,
        "the end",
    )
    assert ended.job_spec == created.job_spec
    assert ended.end_time >= ended.start_time
    listed = client.list_custom_jobs(request={"parent": PARENT, "filter": 'labels.client="gapic"', "page_size": 1})
    assert created.name in [found.name for found in listed]
    operation = client.delete_custom_job(name=created.name)
    operation.result()
    with pytest.raises(exceptions.NotFound, match=created.name):
        client.get_custom_job(name=created.name)


def test_cancelling_and_refusals(api: Any, client: Any) -> None:
    created = client.create_custom_job(parent=PARENT, custom_job=job(api, "to be cancelled", IDLE))
    with pytest.raises(exceptions.BadRequest, match="cancel it"):
        client.delete_custom_job(name=created.name)
    running = api.JobState.JOB_STATE_RUNNING
    until(lambda: client.get_custom_job(name=created.name).state == running, "the start")
    client.cancel_custom_job(name=created.name)
    cancelled = api.JobState.JOB_STATE_CANCELLED
    ended = until(lambda: (found := client.get_custom_job(name=created.name)).state == cancelled and found, "the end")
    assert ended.error.code == 1
    with pytest.raises(exceptions.BadRequest, match="Field: job_spec; Message: is required"):
        client.create_custom_job(parent=PARENT, custom_job=api.CustomJob(display_name="empty"))


def test_a_tuning_job_with_its_trials(api: Any, client: Any) -> None:
    script = (
        "import json, os, time; n = int(next(a for a in __import__('sys').argv if a.startswith('--n=')).split('=')[1]);"
        "entry = {'timestamp': time.time(), 'trial': '1', 'loss': str(n), 'global_step': '1', 'checkpoint_path': ''};"
        "open(os.environ['CLOUD_ML_HP_METRIC_FILE'], 'w').write(json.dumps(entry) + '\\n')"
    )
    study = api.StudySpec(
        metrics=[{"metric_id": "loss", "goal": api.StudySpec.MetricSpec.GoalType.MINIMIZE}],
        parameters=[{"parameter_id": "n", "integer_value_spec": {"min_value": 1, "max_value": 9}}],
        algorithm=api.StudySpec.Algorithm.RANDOM_SEARCH,
    )
    created = client.create_hyperparameter_tuning_job(
        parent=PARENT,
        hyperparameter_tuning_job=api.HyperparameterTuningJob(
            display_name="tuned by gapic",
            study_spec=study,
            max_trial_count=2,
            parallel_trial_count=2,
            trial_job_spec=job(api, "", script).job_spec,
        ),
    )
    deadline = time.monotonic() + 60
    while (found := client.get_hyperparameter_tuning_job(name=created.name)).state != api.JobState.JOB_STATE_SUCCEEDED:
        assert time.monotonic() < deadline, found
    assert [trial.state.name for trial in found.trials] == ["SUCCEEDED", "SUCCEEDED"]
    for trial in found.trials:
        assert trial.final_measurement.metrics[0].value == trial.parameters[0].value
