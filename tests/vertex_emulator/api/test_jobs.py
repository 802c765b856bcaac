"""The methods on jobs over HTTP."""

from typing import Any

import pytest

from tests.vertex_api.futures import future_job
from tests.vertex_emulator import jobs
from tests.vertex_emulator.running import PARENT, RunningEmulator, absent, custom_job, pool
from vertex_api import __version__
from vertex_api.client import Client, Endpoint
from vertex_api.names import KINDS, SERVICE_TASK, Kind, ResourceName
from vertex_api.pipelines import CUSTOM_TASK
from vertex_emulator.api.jobs import add_web_access, web_access
from vertex_emulator.database.records import PENDING, SUCCEEDED, Trial
from vertex_emulator.names import project_number

ACCOUNT = "trainer@my-project.iam.gserviceaccount.com"


def test_created_job_is_pending_under_project_number(shared: RunningEmulator) -> None:
    job = shared.call("POST", f"v1/{PARENT}/customJobs", absent("created"))
    assert job["state"] == "JOB_STATE_PENDING"
    assert job["name"].startswith(f"projects/{project_number('my-project')}/locations/us-central1/customJobs/")
    assert job["createTime"].endswith("Z")
    assert job["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == "1"


def test_both_versions_accept_project_id_and_number(shared: RunningEmulator) -> None:
    name = shared.create(absent("found"))
    job_id = name.rpartition("/")[2]
    for path in (f"v1/{name}", f"v1/{PARENT}/customJobs/{job_id}", f"v1beta1/{name}"):
        assert shared.call("GET", path)["name"] == name


def test_case_and_enum_form_make_no_difference(shared: RunningEmulator) -> None:
    bodies = [
        {
            "display_name": "snake",
            "job_spec": {
                "worker_pool_specs": [
                    {
                        "machine_spec": {
                            "machine_type": "n1-standard-4",
                            "accelerator_type": 5,
                            "accelerator_count": 1,
                        },
                        "replica_count": "1",
                        "container_spec": {"image_uri": "localhost/absent:1"},
                    }
                ]
            },
        },
        {
            "displayName": "camel",
            "jobSpec": {
                "workerPoolSpecs": [
                    {
                        "machineSpec": {
                            "machineType": "n1-standard-4",
                            "acceleratorType": "NVIDIA_TESLA_T4",
                            "acceleratorCount": 1,
                        },
                        "replicaCount": 1,
                        "containerSpec": {"imageUri": "localhost/absent:1"},
                    }
                ]
            },
        },
    ]
    specs = [
        shared.call("POST", f"v1/{PARENT}/customJobs?$alt=json;enum-encoding=name", body)["jobSpec"] for body in bodies
    ]
    assert specs[0] == specs[1]
    assert specs[0]["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] == "NVIDIA_TESLA_T4"


def test_all_violations_have_snake_case_paths(shared: RunningEmulator) -> None:
    body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [{"replicaCount": "many", "bogus": 1}]}}
    error = shared.call("POST", f"v1/{PARENT}/customJobs", body, expect=400)["error"]
    assert error["status"] == "INVALID_ARGUMENT"
    assert error["message"].startswith("List of found errors:\t1.Field: job_spec.worker_pool_specs[0].")
    assert "\t2.Field: " in error["message"]
    details = error["details"][0]
    assert details["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    fields = {violation["field"] for violation in details["fieldViolations"]}
    assert fields >= {"job_spec.worker_pool_specs[0].replica_count", "job_spec.worker_pool_specs[0].bogus"}


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_only_what_a_request_lifts_is_accepted(shared: RunningEmulator, kind: Kind) -> None:
    job, places = future_job(kind)
    collection = f"v1/{PARENT}/{kind.collection}"
    error = shared.call("POST", collection, job, expect=400)["error"]
    assert len(error["details"][0]["fieldViolations"]) == len(places)
    client = Client(Endpoint.for_server(shared.url))
    created = client.create(kind, PARENT, job, check_before=lambda: None, find_created=lambda: None, allowed=places)
    name = ResourceName.parse(created["name"])
    held = client.require(name, is_whole=True)
    pools = held[kind.spec_field]["workerPoolSpecs"]
    assert pools[0]["machineSpec"] == job[kind.spec_field]["workerPoolSpecs"][0]["machineSpec"]
    assert held[kind.spec_field]["pacing"] == job[kind.spec_field]["pacing"]
    said = client.log_lines(name, 20, SERVICE_TASK)
    assert {line.split(": ")[2] for line in said if "as the request lifts it" in line} == {*places}


@pytest.mark.parametrize("nothing", ["", [], {}, None])
def test_unknown_fields_are_rejected_as_spelt(shared: RunningEmulator, nothing: object) -> None:
    body = custom_job(pool("pass", imageURI=nothing, env=None), scheduling=None)
    error = shared.call("POST", f"v1/{PARENT}/customJobs", body, expect=400)["error"]
    (violation,) = error["details"][0]["fieldViolations"]
    assert violation["field"] == "job_spec.worker_pool_specs[0].container_spec.imageURI"
    assert error["message"].startswith(f"List of found errors:\t1.Field: {violation['field']}; Message: unknown field;")
    assert error["message"].endswith("\t")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"tensorboard": "projects/p/locations/europe-west4/tensorboards/1", "serviceAccount": ACCOUNT}, "tensorboard"),
        (
            {"pscInterfaceConfig": {"networkAttachment": "projects/p/regions/europe-west4/networkAttachments/a"}},
            "psc_interface_config.network_attachment",
        ),
    ],
)
def test_resources_of_other_regions_are_rejected(shared: RunningEmulator, spec: dict[str, Any], field: str) -> None:
    key = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"
    body = custom_job(pool("pass"), **spec) | {"encryptionSpec": {"kmsKeyName": key}}
    task = {"trainingTaskDefinition": CUSTOM_TASK, "trainingTaskInputs": body["jobSpec"]}
    pipeline = {"displayName": "p", "encryptionSpec": body["encryptionSpec"], **task}
    for collection, request, prefix in (
        ("customJobs", body, "job_spec"),
        ("trainingPipelines", pipeline, "training_task_inputs"),
    ):
        error = shared.call("POST", f"v1/{PARENT}/{collection}", request, expect=400)["error"]
        violations = error["details"][0]["fieldViolations"]
        assert [each["field"] for each in violations] == ["encryption_spec.kms_key_name", f"{prefix}.{field}"]
        assert all("must be in the region of the jobs, us-central1" in each["description"] for each in violations)


def test_unsupported_field_is_rejected_by_name(shared: RunningEmulator) -> None:
    body = custom_job(pool("pass"), models=["projects/p/locations/us-central1/models/1"])
    error = shared.call("POST", f"v1/{PARENT}/customJobs", body, expect=400)["error"]
    assert "job_spec.models" in error["message"]


def test_outputs_outside_buckets_are_refused(shared: RunningEmulator) -> None:
    body = custom_job(pool("pass"), baseOutputDirectory={"outputUriPrefix": "gs://bucket/../../etc"})
    error = shared.call("POST", f"v1/{PARENT}/customJobs", body, expect=400)["error"]
    assert "job_spec.base_output_directory.output_uri_prefix" in error["message"]


def test_unknown_job_is_not_found(shared: RunningEmulator) -> None:
    for method, suffix in (("GET", ""), ("POST", ":cancel"), ("DELETE", "")):
        error = shared.call(method, f"v1/{PARENT}/customJobs/123{suffix}", expect=404)["error"]
        assert error["status"] == "NOT_FOUND"
        assert "customJobs/123" in error["message"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", f"v1/{PARENT}/pipelineJobs", 501),
        ("GET", "v1/projects/x/locations/y/models/1/evaluations/2", 501),
        ("GET", f"v1/{PARENT}/nowhere", 404),
        ("POST", f"v1/{PARENT}/customJobs/1:pause", 404),
        ("PATCH", f"v1/{PARENT}/customJobs/1", 404),
        ("GET", "v1/projects/x", 404),
        ("GET", "nowhere", 404),
        ("POST", "v1:evaluateInstances", 501),
        ("GET", f"v1/{PARENT}/customJobs/job-1", 400),
        ("DELETE", f"v1/{PARENT}/models/No!", 400),
        ("POST", f"v1/{PARENT}/customJobs?bogus=1", 400),
        ("GET", f"v1/{PARENT}/customJobs?pageSize=-1", 400),
        ("GET", f"v1/{PARENT}/customJobs?pageSize=x", 400),
        ("GET", f"v1/{PARENT}/customJobs?pageToken=x", 400),
        ("GET", f"v1/{PARENT}/customJobs?filter=state", 400),
        ("GET", f"v1/{PARENT}/customJobs?filter=bogus%3D1", 400),
    ],
)
def test_unserved_and_invalid_requests_get_api_errors(
    shared: RunningEmulator, method: str, path: str, code: int
) -> None:
    error = shared.call(method, path, expect=code)["error"]
    assert error["code"] == code
    assert error["message"]
    assert error["status"]


def test_body_other_than_json_object_is_rejected(shared: RunningEmulator) -> None:
    for raw in (b"{", b"[]", b"\xff", b'"x"'):
        headers = {"Content-Type": "application/json"}
        reply = shared.http.post(f"{shared.url}/v1/{PARENT}/customJobs", data=raw, headers=headers)
        assert (reply.status_code, reply.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_request_over_four_mebibytes_is_rejected(shared: RunningEmulator) -> None:
    reply = shared.http.post(f"{shared.url}/v1/{PARENT}/customJobs", data=b" " * (5 << 20))
    assert reply.status_code == 413


def test_pages_contain_each_job_once(shared: RunningEmulator) -> None:
    parent = "projects/paging/locations/us-central1"
    names = [shared.call("POST", f"v1/{parent}/customJobs", absent(f"page {i}"))["name"] for i in range(7)]
    seen: list[str] = []
    token, pages = "", 0
    while True:
        reply = shared.call("GET", f"v1/{parent}/customJobs", params={"pageSize": 3, "pageToken": token})
        seen += [job["name"] for job in reply["customJobs"]]
        pages += 1
        token = reply.get("nextPageToken", "")
        if not token:
            break
    assert seen == names[::-1]
    assert pages == 3


def test_list_filters_by_label_name_and_state(shared: RunningEmulator) -> None:
    parent = "projects/filtering/locations/us-central1"
    for team in ("vision", "speech"):
        shared.call("POST", f"v1/{parent}/customJobs", absent(f"{team} job", {"team": team}))

    def found(text: str) -> list[str]:
        reply = shared.call("GET", f"v1/{parent}/customJobs", params={"filter": text})
        return [job["displayName"] for job in reply.get("customJobs", [])]

    assert found('labels.team="vision"') == ["vision job"]
    assert found("labels.team:*") == ["speech job", "vision job"]
    assert found('display_name:"sp*" AND NOT state=JOB_STATE_RUNNING') == ["speech job"]
    assert found('labels.team="none"') == []


def test_an_empty_list_is_an_empty_object(shared: RunningEmulator) -> None:
    assert shared.call("GET", "v1/projects/nobody/locations/us-central1/customJobs") == {}
    shared.call("POST", "v1/projects/elsewhere/locations/europe-west1/customJobs", absent("there"))
    assert shared.call("GET", "v1/projects/elsewhere/locations/us-central1/customJobs") == {}


def test_masks_leave_only_what_they_name(shared: RunningEmulator) -> None:
    parent = "projects/masking/locations/us-central1"
    shared.call("POST", f"v1/{parent}/customJobs", absent("masked"))
    jobs = shared.call("GET", f"v1/{parent}/customJobs", params={"readMask": "name,displayName"})["customJobs"]
    assert [set(job) for job in jobs] == [{"name", "displayName"}]


def test_every_answer_bears_the_marker_errors_too(shared: RunningEmulator) -> None:
    for path in ("healthz", "readyz", "", f"v1/{PARENT}/customJobs/1", "nowhere"):
        reply = shared.http.get(f"{shared.url}/{path}")
        assert reply.headers["x-vertex-emulator"] == __version__


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}])
def test_pages_of_other_hosts_are_refused(shared: RunningEmulator, headers: dict[str, str]) -> None:
    reply = shared.http.post(f"{shared.url}/v1/{PARENT}/customJobs", json=absent("evil"), headers=headers)
    assert reply.status_code == 403
    assert reply.json()["error"]["status"] == "PERMISSION_DENIED"


@pytest.mark.parametrize("headers", [{"Host": "localhost:1"}, {"Host": "[::1]"}])
def test_own_names_are_let_in(shared: RunningEmulator, headers: dict[str, str]) -> None:
    assert shared.http.get(f"{shared.url}/healthz", headers=headers).status_code == 200


SPEC = jobs.custom_job_spec(jobs.pool(), jobs.pool(2), enableWebAccess=True)
PAGE = "http://here/jobs/customJobs/42/shell"


def test_running_jobs_have_uris_by_task() -> None:
    tasks = ("workerpool0-0", "workerpool1-0", "workerpool1-1")
    uris = {task: f"{PAGE}/{task}" for task in tasks}
    assert web_access(jobs.custom_job(SPEC), "http://here") == {"webAccessUris": uris}


def test_other_jobs_have_no_uris() -> None:
    assert web_access(jobs.custom_job(), "http://here") == {}
    for state in (PENDING, SUCCEEDED):
        assert web_access(jobs.custom_job(SPEC, state=state), "http://here") == {}


def test_running_trials_alone_have_uris() -> None:
    study = jobs.tuning_job(
        jobs.tuning_job_spec(trialJobSpec={"workerPoolSpecs": [jobs.pool()], "enableWebAccess": True})
    )
    trials = [
        Trial("7", 1, "SUCCEEDED", {}, "41"),
        Trial("7", 2, "ACTIVE", {}, "42"),
        Trial("7", 3, "REQUESTED", {}, "43"),
    ]
    body = {"trials": [{"id": "1"}, {"id": "2"}, {"id": "3"}]}
    add_web_access(body, study, trials, "http://here")
    uris = {"workerpool0-0": f"{PAGE}/workerpool0-0"}
    assert body["trials"] == [{"id": "1"}, {"id": "2", "webAccessUris": uris}, {"id": "3"}]
    closed = {"trials": [{"id": "2"}]}
    add_web_access(closed, jobs.tuning_job(), trials[1:2], "http://here")
    assert closed == {"trials": [{"id": "2"}]}
