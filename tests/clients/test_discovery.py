"""google-api-python-client with the discovery document that it ships."""

from typing import Any

import httplib2
import pytest
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

from tests.clients.conftest import IDLE
from tests.vertex_emulator.running import PARENT, RunningEmulator, custom_job, pool


@pytest.fixture(params=["v1", "v1beta1"])
def locations(request: pytest.FixtureRequest, emulator: RunningEmulator) -> Any:
    """`projects.locations` of the API."""
    http = httplib2.Http(proxy_info=None)
    options = {"api_endpoint": emulator.url}
    api = build("aiplatform", request.param, http=http, client_options=options, static_discovery=True)
    yield api.projects().locations()
    api.close()


def test_a_custom_job_from_creation_to_deletion(locations: Any, emulator: RunningEmulator) -> None:
    jobs = locations.customJobs()
    body = custom_job(pool("print('hi')"), name="by discovery", labels={"client": "discovery"})
    created = jobs.create(parent=PARENT, body=body).execute()
    assert created["displayName"] == "by discovery"
    assert emulator.ended(created["name"])["state"] == "JOB_STATE_SUCCEEDED"
    listed = jobs.list(parent=PARENT, filter='labels.client="discovery"', readMask="name,state").execute()
    assert {"name": created["name"], "state": "JOB_STATE_SUCCEEDED"} in listed["customJobs"]
    deleted = jobs.delete(name=created["name"]).execute()
    assert deleted["done"]
    operations, parent = locations.operations(), deleted["name"].partition("/operations/")[0]
    assert operations.get(name=deleted["name"]).execute() == deleted
    assert deleted in operations.list(name=parent).execute()["operations"]
    with pytest.raises(HttpError, match="does not exist") as raised:
        jobs.get(name=created["name"]).execute()
    assert raised.value.status_code == 404


def test_a_running_job_is_cancelled(locations: Any, emulator: RunningEmulator) -> None:
    jobs = locations.customJobs()
    created = jobs.create(parent=PARENT, body=custom_job(pool(IDLE))).execute()
    emulator.in_state(created["name"], "JOB_STATE_RUNNING")
    assert jobs.cancel(name=created["name"], body={}).execute() == {}
    assert emulator.ended(created["name"])["state"] == "JOB_STATE_CANCELLED"
    assert jobs.get(name=created["name"]).execute()["error"]["code"] == 1
