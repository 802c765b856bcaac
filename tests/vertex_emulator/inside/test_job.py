"""A job as people write it for the cloud: no endpoint, no credential. Its image has no library of Google's."""

import json
import os
from collections.abc import Iterator

import pytest

from tests.vertex_emulator.inside.test_standins import Server
from tests.vertex_emulator.running import RunningEmulator, custom_job, pool, until

ACCOUNT = "trainer@my-project.iam.gserviceaccount.com"
TRAINER = """
import json, os, time, urllib.error, urllib.request

def ask(url, data=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = urllib.request.urlopen(urllib.request.Request(url, data, headers))
    return reply.read().decode()

def status(url, **headers):
    try:
        ask(url, **headers)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return type(error).__name__

def account(host):
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/"
    return ask(url + "email", Metadata_Flavor="Google"), ask(url + "token", Metadata_Flavor="Google")

storage, bucket = os.environ["STORAGE_EMULATOR_HOST"], "home"
email, token = account(os.environ["GCE_METADATA_HOST"])
token = json.loads(token)["access_token"]
bearer = {"Authorization": f"Bearer {token}"}
by_name = account("metadata.google.internal") if os.environ.get("BY_NAME") else None
datasets = "https://bigquery.googleapis.com/bigquery/v2/projects/my-project/datasets"
stand_in = ask(datasets, **bearer) if by_name else None
emulator = status("https://pubsub.googleapis.com/vertex_emulator/jobs", **bearer) if by_name else None
upload = f"{storage}/upload/storage/v1/b/{bucket}/o?uploadType=media&name=model/model.txt"
ask(upload, b"42", Content_Type="text/plain", **bearer)
with open(f"/gcs/{bucket}/model/model.txt") as file:
    mounted = file.read()
with open(f"/gcs/{bucket}/written", "w") as file:
    file.write("by the mount")
listed = json.loads(ask(f"{storage}/storage/v1/b/{bucket}/o", **bearer))["items"]
assert json.loads(ask(f"{storage}/b/{bucket}/o", **bearer))["items"] == listed, "by Node's path"
entries = {"entries": [{"textPayload": "a line of Cloud Logging", "severity": "WARNING"}]}
ask(f"{storage}/v2/entries:write", json.dumps(entries).encode(), Content_Type="application/json", **bearer)
jobs = json.loads(ask(f"{storage}/v1/projects/my-project/locations/us-central1/customJobs", **bearer))["customJobs"]
print(json.dumps({
    "message": "found", "email": email, "token": token, "mounted": mounted, "by name": by_name and by_name[0],
    "stand-in": stand_in, "emulator": emulator,
    "url": f"{storage}/storage/v1/b", "listed": [each["name"] for each in listed],
    "itself": any(job["name"].endswith(os.environ["CLOUD_ML_JOB_ID"]) for job in jobs),
    "refused": [status(storage + path, **bearer) for path in (
        "/vertex_emulator/jobs", "/healthz", "/v1/projects/other/locations/us-central1/customJobs")],
    "forged": status(f"{storage}/storage/v1/b", Authorization="Bearer ya29.emulated.1.0"),
}), flush=True)
while not os.path.exists(f"/gcs/{bucket}/end"):
    time.sleep(0.05)
"""


@pytest.fixture
def bigquery(shared: RunningEmulator) -> Iterator[Server]:
    """A stand-in for BigQuery that the project of jobs has."""
    file = shared.data / "endpoints.json"
    with Server() as server:
        urls = {"bigquery.googleapis.com": server.url, "pubsub.googleapis.com": shared.url}
        file.write_text(json.dumps({"my-project": urls}))
        yield server
        file.unlink()


def test_code_for_the_cloud_runs_as_it_is(shared: RunningEmulator, bigquery: Server) -> None:
    env = [{"name": "BY_NAME", "value": "1"}] if os.geteuid() == 0 else []
    (shared.data / "gcs" / "home").mkdir()
    job = shared.create(custom_job(pool(TRAINER, env=env), serviceAccount=ACCOUNT))
    (found,) = until(lambda: [each for each in shared.objects(job) if "token" in each], "what the job found")
    assert (found["email"], found["by name"]) == (ACCOUNT, ACCOUNT if env else None)
    path = "/bigquery/v2/projects/my-project/datasets"
    assert (found["stand-in"], bigquery.paths()) == (("answered\n", [path]) if env else (None, []))
    assert found["emulator"] == (403 if env else None)  # it takes no such host, whoever asks
    assert found["mounted"] == "42"
    assert found["listed"] == ["model/model.txt", "written"]
    assert found["itself"]
    assert (found["refused"], found["forged"]) == ([404, 404, 403], 401)
    assert "a line of Cloud Logging" in shared.lines(job, 'severity="WARNING"')

    # Its token counts now, for its container alone.
    assert shared.get(job)["state"] == "JOB_STATE_RUNNING"
    reply = shared.http.get(found["url"], headers={"Authorization": f"Bearer {found['token']}"})
    assert (reply.status_code, reply.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
    expected = {f"storage.objects.{each}" for each in ("create on gs://home", "list on gs://home")}
    expected |= {"logging.logEntries.create on project", "aiplatform.customJobs.list on project"}
    expected.add("storage.objects.get on gs://vertex_emulator")  # what the path is to Cloud Storage's XML API
    needed = shared.call("GET", f"vertex_emulator/jobs/{job.rpartition('/')[2]}/usage")["permissions"]
    assert {f"{each['permission']} on {each['resource']}" for each in needed} == expected
    (shared.data / "gcs" / "home" / "end").touch()
    assert shared.ended(job)["state"] == "JOB_STATE_SUCCEEDED"
