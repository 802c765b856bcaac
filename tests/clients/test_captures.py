"""What public captures of the real service show, as Google's own clients meet it here (docs/fidelity.md)."""

import json
import re
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials

from tests.clients.test_sdk import snake
from tests.vertex_emulator import packages
from tests.vertex_emulator.running import IMAGE, PARENT, RunningEmulator, line_of, until

LINK = (
    r"To find out more about why your job exited please check the logs: https://console\.cloud\.google\.com/logs/viewer"
    r"\?project=\d+&resource=ml_job%2Fjob_id%2F(\d+)&advancedFilter=resource\.type%3D%22ml_job%22%0A"
    r"resource\.labels\.job_id%3D%22\1%22"
)
FAILS = "import sys; print('epoch 1'); sys.exit('loss is nan')"
PACKAGE = "def one(n): return 1 / n and two(n - 1)\n\ndef two(n): return 1 / n and one(n - 1)\n\none(60)\n"
NAMES = """
import json, os, socket
(own,) = json.loads(os.environ["CLUSTER_SPEC"])["cluster"]["workerpool0"]
own = own.partition(":")[0]
name = socket.gethostname()
print(json.dumps({"own": own, "name": name, "both": [socket.gethostbyname(own), socket.gethostbyname(name)]}))
"""


@pytest.fixture(scope="module")
def client(emulator: RunningEmulator) -> Any:
    from google.cloud import aiplatform_v1  # here because that takes a second, in each process that collects tests

    options = {"api_endpoint": emulator.url.removeprefix("http://")}
    return aiplatform_v1.JobServiceClient(credentials=AnonymousCredentials(), client_options=options)


@pytest.fixture(scope="module")
def failed(client: Any) -> Any:
    """A job of one container that wrote to both streams and failed."""
    pool = {**snake(FAILS), "machine_spec": {"machine_type": "n1-standard-4"}}
    body = {"display_name": "capture", "job_spec": {"worker_pool_specs": [pool]}}
    created = client.create_custom_job(parent=PARENT, custom_job=body)
    assert created.state.name == "JOB_STATE_PENDING"
    return until(
        lambda: (job := client.get_custom_job(name=created.name)).state.name == "JOB_STATE_FAILED" and job, "the end"
    )


def test_a_failure_has_the_service_s_text_and_link(failed: Any) -> None:
    assert failed.error.code == 3
    text = r"The replica workerpool0-0 exited with a non-zero status of 1\. "
    match = re.fullmatch(text + LINK, failed.error.message)
    assert match is not None and match[1] == failed.name.rpartition("/")[2]


def test_a_boot_disk_is_filled_in_at_creation(failed: Any) -> None:
    disk = failed.job_spec.worker_pool_specs[0].disk_spec
    assert (disk.boot_disk_type, disk.boot_disk_size_gb) == ("pd-ssd", 100)


def test_jobs_start_and_end_at_whole_seconds(failed: Any, emulator: RunningEmulator) -> None:
    job = emulator.get(failed.name)
    assert re.fullmatch(r"[\d-]+T[\d:]+\.\d{6}Z", job["createTime"])
    assert all(re.fullmatch(r"[\d-]+T[\d:]+Z", job[field]) for field in ("startTime", "endTime"))
    assert failed.create_time <= failed.start_time <= failed.end_time <= failed.update_time


def test_lines_of_a_failed_job_come_as_in_captures(failed: Any, emulator: RunningEmulator) -> None:
    entries = emulator.entries(failed.name, "severity!=WARNING")  # those are the emulator's own
    service = [entry for entry in entries if entry["resource"]["labels"]["task_name"] == "service"]
    assert [entry["severity"] for entry in service] == ["INFO"] * 6 + ["ERROR"] + ["INFO"] * 2
    assert [line_of(entry).partition(".")[0] for entry in service] == [
        "Waiting for job to be provisioned",
        "Vertex AI is provisioning job running framework",
        "Vertex AI is setting up this job",
        "Waiting for training program to start",
        "Job is preparing",
        "Job is running",
        "The replica workerpool0-0 exited with a non-zero status of 1",
        "Finished tearing down training program",
        "Job failed",
    ]
    first_line = min(entry["timestamp"] for entry in entries if "jsonPayload" in entry)
    assert service[4]["timestamp"] < first_line


def test_container_lines_are_found_by_their_message(failed: Any, emulator: RunningEmulator) -> None:
    (entry,) = emulator.entries(failed.name, r'jsonPayload.message=~"loss is (nan|inf)$"')
    assert entry["jsonPayload"] == {"message": "loss is nan", "levelname": "ERROR", "attrs": {"tag": "workerpool0-0"}}
    assert entry["severity"] == "ERROR"


def test_the_delete_operation_is_of_the_location(client: Any, failed: Any) -> None:
    operation = client.delete_custom_job(name=failed.name)
    assert re.fullmatch(r"projects/\d+/locations/us-central1/operations/\d+", operation.operation.name)
    with pytest.raises(exceptions.NotFound, match=rf'The CustomJob "{failed.name}" does not exist\.'):
        client.get_custom_job(name=failed.name)


def test_a_malformed_name_is_a_bad_request(client: Any, aiplatform: Any) -> None:
    with pytest.raises(exceptions.BadRequest, match=r"Field: name; Message: Invalid CustomJob resource name\."):
        client.get_custom_job(name=f"{PARENT}/customJobs/my-job")
    with pytest.raises(
        exceptions.NotFound, match=r'The Model "projects/\d+/locations/us-central1/models/404" does not'
    ):
        aiplatform.Model("404")


def test_a_container_s_name_is_not_its_cluster_name(aiplatform: Any, emulator: RunningEmulator) -> None:
    job = aiplatform.CustomJob(display_name="names", worker_pool_specs=[snake(NAMES)])
    job.run()
    (found,) = emulator.objects(job.resource_name)
    assert re.fullmatch(rf"{found['own']}-[a-z0-9]{{5}}", found["name"])
    assert all(found["both"])


def test_scalars_of_sdk_pipelines_reach_the_container(aiplatform: Any, emulator: RunningEmulator) -> None:
    script = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['WANDB_DISABLED']]))"
    job = aiplatform.CustomContainerTrainingJob(
        display_name="scalars", container_uri=IMAGE, command=["python3", "-c", script]
    )
    job.run(
        base_output_dir="gs://captures/scalars",
        args=["--epochs", 7, 0.5],
        environment_variables={"WANDB_DISABLED": True},
        machine_type="n1-standard-4",
    )
    (custom,) = aiplatform.CustomJob.list(filter='display_name="scalars-custom-job"')
    (line,) = emulator.lines(custom.resource_name)
    assert json.loads(line) == [["--epochs", "7.0", "0.5"], "true"]


def test_a_pipeline_without_its_image_is_not_found(aiplatform: Any) -> None:
    job = aiplatform.CustomContainerTrainingJob(display_name="no-image", container_uri="localhost/none/such:1")
    with pytest.raises(exceptions.NotFound, match=r"The image localhost/none/such:1 does not exist\."):
        job.run(base_output_dir="gs://captures/none", machine_type="n1-standard-4")


def test_a_failed_package_raises_its_shortened_traceback(aiplatform: Any, emulator: RunningEmulator) -> None:
    wheel = packages.wheel(emulator.data / "gcs" / "captures", "failing", PACKAGE)
    pool = {**snake(""), "python_package_spec": packages_spec(wheel)}
    del pool["container_spec"]
    job = aiplatform.CustomJob(display_name="package", worker_pool_specs=[pool])
    with pytest.raises(RuntimeError):
        job.run()
    message = job.error.message
    head = (
        r"The replica workerpool0-0 exited with a non-zero status of 1\. Termination reason: Error\. \n"
        r"Traceback \(most recent call last\):\n  \[\.\.\.\]\n(?:  .*\n)+ZeroDivisionError: division by zero\n\n"
    )
    assert re.fullmatch(head + LINK, message), message
    assert len(message) < 3000


def packages_spec(wheel: str) -> dict[str, Any]:
    return {
        "executor_image_uri": IMAGE,
        "package_uris": [f"gs://captures/{wheel}"],
        "python_module": "failing.task",
    }


def test_quotas_refuse_jobs_and_fail_pipelines(aiplatform: Any, emulator: RunningEmulator) -> None:
    emulator.call("POST", "vertex_emulator/faults", {"kind": "quota", "name": "over*", "count": 2})
    with pytest.raises(exceptions.TooManyRequests, match="exceed quota limits: aiplatform"):
        aiplatform.CustomJob(display_name="over-job", worker_pool_specs=[snake("pass")]).submit()
    pipeline = aiplatform.CustomContainerTrainingJob(display_name="over-pipeline", container_uri=IMAGE)
    with pytest.raises(RuntimeError, match="exceed quota limits: aiplatform"):
        pipeline.run(base_output_dir="gs://captures/over", machine_type="n1-standard-4")
    (listed,) = aiplatform.CustomContainerTrainingJob.list(filter='display_name="over-pipeline"')
    assert (listed.state.name, listed.gca_resource.error.code) == ("PIPELINE_STATE_FAILED", 8)


def test_a_model_of_an_empty_folder_is_not_uploaded(aiplatform: Any) -> None:
    with pytest.raises(
        exceptions.NotFound, match=r'There are no files in directory "gs://captures/empty"\. Please check'
    ):
        aiplatform.Model.upload(
            display_name="empty", artifact_uri="gs://captures/empty", serving_container_image_uri="serve:1"
        )
