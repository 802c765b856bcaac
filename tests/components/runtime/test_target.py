"""Targets: what they resolve to, their endpoints, pace, links and one-line errors."""

from dataclasses import replace

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.runtime import emulator, engine, target
from vertex_training.runtime.target import GoogleCloudLinks

from vertex_api.client import Endpoint
from vertex_api.names import ResourceName
from vertex_api.retry import Caller

PARENT = "projects/local/locations/us-central1"
NAME = ResourceName.parse(f"{PARENT}/customJobs/7")


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the emulator is, call by call; the last one stays."""
    urls = ["http://127.0.0.1:1"]

    def start() -> Endpoint:
        return Endpoint.for_server(urls.pop(0) if len(urls) > 1 else urls[0])

    monkeypatch.setattr(emulator, "start", start)
    return urls


def test_a_local_name_resolves_to_the_emulator(urls: list[str]) -> None:
    at = target.resolve(f"//local/{PARENT}")
    assert at.parent == PARENT
    assert at.links.page(NAME) == "http://127.0.0.1:1/jobs/customJobs/7"
    assert at.links.logs(NAME) == "vertex-emulator logs 7"


def test_an_emulator_that_has_moved_is_followed(urls: list[str]) -> None:
    urls.append("http://127.0.0.1:2")
    first, second, third = (target.resolve(f"//local/{PARENT}") for _ in range(3))
    links = [at.links.page(NAME) for at in (first, second)]
    assert links == [f"http://127.0.0.1:{port}/jobs/customJobs/7" for port in (1, 2)]
    assert first.client is not second.client
    assert second.client is third.client


@pytest.mark.parametrize("parent", ["//storage.googleapis.com/projects/p/locations/r", PARENT, ""])
def test_a_target_of_another_version_is_rejected(urls: list[str], parent: str) -> None:
    with pytest.raises(SubmitFailed) as failure:
        target.resolve(parent)
    assert str(failure.value).startswith(f'"{parent}" in the state is of no target that this version knows')


CLOUD_PARENT = "projects/acme/locations/europe-west4"


def test_a_cloud_name_resolves_to_its_regional_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*target.ENDPOINT_VARIABLES, target.EXECUTIONS_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    seen: list[Endpoint] = []
    monkeypatch.setattr(target, "_client", lambda endpoint, _location: seen.append(endpoint))
    at = target.resolve(f"//aiplatform.googleapis.com/{CLOUD_PARENT}")
    assert seen == [Endpoint("https://europe-west4-aiplatform.googleapis.com", "https://logging.googleapis.com")]
    assert at.parent == CLOUD_PARENT
    name = ResourceName.parse("projects/123/locations/europe-west4/hyperparameterTuningJobs/7")
    page = "https://console.cloud.google.com/vertex-ai/locations/europe-west4/training/7?project=acme"
    assert at.links.page(name) == page
    logs = "gcloud ai hp-tuning-jobs stream-logs 7 --region=europe-west4 --project=acme"
    assert at.links.logs(name) == logs


@pytest.mark.parametrize(
    ("location", "seconds"), [(f"//aiplatform.googleapis.com/{CLOUD_PARENT}", 30), (f"//local/{PARENT}", 0)]
)
def test_only_the_service_is_given_time_to_list(
    urls: list[str], monkeypatch: pytest.MonkeyPatch, location: str, seconds: float
) -> None:
    made: list[Caller] = []
    monkeypatch.setattr(target, "Client", lambda _endpoint, caller: made.append(caller))
    target._client.cache_clear()
    target.resolve(location)
    target._client.cache_clear()
    (caller,) = made
    assert caller._lost_answer_seconds == seconds
    assert caller._wait is engine.wait_for_cancellation, "Ctrl-C ends its waits"


def test_gcloud_s_own_variables_move_the_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Endpoint] = []
    monkeypatch.setattr(target, "_client", lambda endpoint, _location: seen.append(endpoint))
    for variable in target.ENDPOINT_VARIABLES:
        monkeypatch.setenv(variable, "http://127.0.0.1:1/")
    target.resolve(f"//aiplatform.googleapis.com/{CLOUD_PARENT}")
    assert seen == [Endpoint.for_server("http://127.0.0.1:1")]
    monkeypatch.setenv(target.EXECUTIONS_VARIABLE, "http://127.0.0.1:2/")
    target.resolve(f"//aiplatform.googleapis.com/{CLOUD_PARENT}")
    assert seen[1] == replace(seen[0], executions="http://127.0.0.1:2")


def test_a_cloud_pipeline_links_page_for_its_log() -> None:
    links = GoogleCloudLinks("acme")
    name = ResourceName.parse("projects/123/locations/europe-west4/trainingPipelines/7")
    assert links.logs(name) == links.page(name)
    assert links.page(name).endswith("/locations/europe-west4/training/7?project=acme")
