from tests.vertex_emulator.jobs import LOCATION, custom_job
from vertex_emulator.database.records import Replica
from vertex_emulator.scheduling import failures

CHIEF = Replica(0, 0)
HEAD = "Traceback (most recent call last):"
FRAME = '  File "/root/.local/lib/python3.11/site-packages/trainer/task.py", line 7, in main'


def test_unknown_executable_reads_like_service() -> None:
    docker = (
        "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create "
        'failed: unable to start container process: exec: "train": executable file not found in $PATH: unknown'
    )
    job = custom_job()
    assert failures.not_started(job, CHIEF, docker, 1).message == (
        "The replica workerpool0-0 exited with a non-zero status of 127. Termination reason: ContainerCannotRun. \n"
        f" Termination log message: {docker[docker.index('OCI') :]}\n\n"
        f"To find out more about why your job exited please check the logs: {failures.console_url(job)}"
    )
    denied = 'OCI runtime create failed: exec: "/etc/passwd": permission denied'
    assert (
        "non-zero status of 126. Termination reason: ContainerCannotRun."
        in failures.not_started(job, CHIEF, denied, 1).message
    )


def test_what_only_happens_here_is_said_plainly() -> None:
    failure = failures.not_started(custom_job(), Replica(1, 2), "the package gs://b/p.tar.gz does not exist", 1)
    assert failure.message == "The replica workerpool1-2 failed to start: the package gs://b/p.tar.gz does not exist"


def test_last_traceback_is_found() -> None:
    first = [HEAD, FRAME, "KeyError: 1", "", "During handling of the above exception, another exception occurred:", ""]
    last = [HEAD, FRAME, "    train()", "ValueError: no", "on two lines"]
    assert failures.last_traceback(["warning", *first, *last]) == "\n".join(last)
    assert failures.last_traceback(["warning", "no Traceback (most recent call last): here"]) == ""


def test_long_traceback_is_shortened_at_its_top() -> None:
    frames = [f"{FRAME}{number}" for number in range(1000)]
    found = failures.last_traceback([HEAD, *frames, "RecursionError: too deep"]).splitlines()
    assert found[:2] == [HEAD, "  [...]"]
    assert found[2:-1] == frames[-len(found[2:-1]) :]
    assert found[-1] == "RecursionError: too deep"
    assert 1500 < sum(map(len, found)) <= 2100
    assert len(failures.last_traceback([HEAD, "x" * 10_000])) < 2100


def test_artifact_registry_images_get_service_message() -> None:
    image = "europe-west4-docker.pkg.dev/other-project/trainers/digits:1"
    found = failures.image_unavailable(custom_job(), image, f"{image} cannot be pulled: denied", 1)
    assert found.message == (
        f"Vertex AI Service Agent service-{LOCATION.project_number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com does "
        "not have permission to access Artifact Registry repository "
        "projects/other-project/locations/europe-west4/repositories/trainers. "
        f"On this machine: {image} cannot be pulled: denied."
    )


def test_another_image_is_refused_with_docker_reason() -> None:
    for image in ("trainer:1", "localhost/trainer:1", "x-docker.pkg.dev/no-repository"):
        found = failures.image_unavailable(custom_job(), image, f"{image} cannot be pulled: not found", 1)
        assert found.message == f"The image {image} cannot be pulled: not found."


def test_an_unreached_registry_has_denied_nothing() -> None:
    host = "europe-west4-docker.pkg.dev"
    image = f"{host}/other-project/trainers/digits:1"
    get = f'Get "https://{host}/v2/"'
    for reason in (
        f"{get}: dial tcp: lookup {host} on 10.0.0.2:53: no such host",
        f"{get}: dial tcp 10.0.0.1:443: connect: connection refused",
        f"{get}: net/http: TLS handshake timeout",
        f"{get}: tls: failed to verify certificate: x509: certificate signed by unknown authority",
        f"{get}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        f"{get}: EOF",
    ):
        found = failures.image_unavailable(custom_job(), image, f"{image} cannot be pulled: {reason}", 1)
        assert found.message == (
            f"The image {image} cannot be pulled: {reason}. "
            f"This machine does not reach {host}: connect it, or bring the image here by `docker load`."
        )
    found = failures.image_unavailable(custom_job(), "team/x:1", "team/x:1 cannot be pulled: no such host", 1)
    assert "does not reach docker.io:" in found.message
