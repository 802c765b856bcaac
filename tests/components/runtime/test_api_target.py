"""Targets: found by the full resource name when a call is made, so that no address is ever part of the state."""

from dataclasses import replace

import pytest
from vertex_training.errors import SubmitFailed
from vertex_training.runtime import api_target, emulator_process, engine_cancellation

from vertex_api.calls.retrying_caller import RetryingCaller
from vertex_api.client import Endpoint
from vertex_api.resource_names import ResourceName

PARENT = "projects/local/locations/us-central1"
NAME = ResourceName.parse(f"{PARENT}/customJobs/7")


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the emulator is, call by call; the last one stays."""
    urls = ["http://127.0.0.1:1"]

    def start() -> Endpoint:
        return Endpoint.for_server(urls.pop(0) if len(urls) > 1 else urls[0])

    monkeypatch.setattr(emulator_process, "start_emulator_unless_running", start)
    return urls


def test_a_local_name_resolves_to_the_emulator(urls: list[str]) -> None:
    at = api_target.resolve_target_and_start_emulator(f"//local/{PARENT}")
    assert at.parent == PARENT
    assert at.links.get_job_page_url(NAME) == "http://127.0.0.1:1/jobs/customJobs/7"
    assert at.links.get_log_command_or_pipeline_page_url(NAME) == "vertex-emulator logs 7"


def test_an_emulator_that_has_moved_is_followed(urls: list[str]) -> None:
    urls.append("http://127.0.0.1:2")
    first, second, third = (api_target.resolve_target_and_start_emulator(f"//local/{PARENT}") for _ in range(3))
    links = [at.links.get_job_page_url(NAME) for at in (first, second)]
    assert links == [f"http://127.0.0.1:{port}/jobs/customJobs/7" for port in (1, 2)]
    assert first.client is not second.client
    assert second.client is third.client


@pytest.mark.parametrize("parent", ["//storage.googleapis.com/projects/p/locations/r", PARENT, ""])
def test_a_target_of_another_version_is_rejected(urls: list[str], parent: str) -> None:
    with pytest.raises(SubmitFailed) as failure:
        api_target.resolve_target_and_start_emulator(parent)
    assert str(failure.value).startswith(f'"{parent}" in the state is of no target that this version knows')


CLOUD_PARENT = "projects/acme/locations/europe-west4"


def test_a_cloud_name_resolves_to_its_regional_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*api_target.ENDPOINT_VARIABLES, api_target.EXECUTIONS_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    seen: list[Endpoint] = []
    monkeypatch.setattr(api_target, "_get_or_create_client", lambda endpoint, _location: seen.append(endpoint))
    at = api_target.resolve_target_and_start_emulator(f"//aiplatform.googleapis.com/{CLOUD_PARENT}")
    assert seen == [Endpoint("https://europe-west4-aiplatform.googleapis.com", "https://logging.googleapis.com")]
    assert at.parent == CLOUD_PARENT
    name = ResourceName.parse("projects/123/locations/europe-west4/hyperparameterTuningJobs/7")
    page = "https://console.cloud.google.com/vertex-ai/locations/europe-west4/training/7?project=acme"
    assert at.links.get_job_page_url(name) == page
    logs = "gcloud ai hp-tuning-jobs stream-logs 7 --region=europe-west4 --project=acme"
    assert at.links.get_log_command_or_pipeline_page_url(name) == logs


@pytest.mark.parametrize(
    ("location", "seconds"), [(f"//aiplatform.googleapis.com/{CLOUD_PARENT}", 30), (f"//local/{PARENT}", 0)]
)
def test_only_the_service_is_given_time_to_list(
    urls: list[str], monkeypatch: pytest.MonkeyPatch, location: str, seconds: float
) -> None:
    made: list[RetryingCaller] = []
    monkeypatch.setattr(api_target, "RestClient", lambda _endpoint, caller: made.append(caller))
    api_target._get_or_create_client.cache_clear()
    api_target.resolve_target_and_start_emulator(location)
    api_target._get_or_create_client.cache_clear()
    (caller,) = made
    assert caller._lost_answer_seconds == seconds
    assert caller._wait is engine_cancellation.wait_for_cancellation, "Ctrl-C ends its waits"


def test_gcloud_s_own_variables_move_the_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Endpoint] = []
    monkeypatch.setattr(api_target, "_get_or_create_client", lambda endpoint, _location: seen.append(endpoint))
    for variable in api_target.ENDPOINT_VARIABLES:
        monkeypatch.setenv(variable, "http://127.0.0.1:1/")
    api_target.resolve_target_and_start_emulator(f"//aiplatform.googleapis.com/{CLOUD_PARENT}")
    assert seen == [Endpoint.for_server("http://127.0.0.1:1")]
    monkeypatch.setenv(api_target.EXECUTIONS_VARIABLE, "http://127.0.0.1:2/")
    api_target.resolve_target_and_start_emulator(f"//aiplatform.googleapis.com/{CLOUD_PARENT}")
    assert seen[1] == replace(seen[0], executions="http://127.0.0.1:2")
