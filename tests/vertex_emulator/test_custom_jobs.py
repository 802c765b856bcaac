import json
import re
from datetime import datetime

from tests.vertex_emulator.running import RunningEmulator, custom_job, labelled, line_of, pool, until

SLEEP = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(9)); print('up', flush=True); time.sleep(600)"
MEET = """
import json, os, socket, sys, time
cluster = json.loads(os.environ["CLUSTER_SPEC"])
peers = [host for hosts in cluster["cluster"].values() for host in hosts]
addresses = [socket.gethostbyname(peer.split(":")[0]) for peer in peers]
print(json.dumps({"severity": "NOTICE", "message": "met", "peers": addresses}), flush=True)
if cluster["task"]["type"] == "workerpool0":
    server = socket.create_server(("", 2222))
    names = sorted(server.accept()[0].recv(100).decode() for _ in peers[1:])
    print(" ".join(names))
else:
    host, port = cluster["cluster"]["workerpool0"][0].split(":")
    deadline = time.monotonic() + 30
    while True:
        try:
            connection = socket.create_connection((host, int(port)))
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    connection.send(f"{cluster['task']['type']}-{cluster['task']['index']}".encode())
    time.sleep(600)
"""


def test_job_writes_to_its_log_and_bucket(shared: RunningEmulator) -> None:
    script = (
        "import os, sys; print(sys.argv[1:]); os.makedirs('/gcs/my-bucket/run/model');"
        "open('/gcs/my-bucket/run/model/weights', 'w').write(os.environ['TOKEN'])"
    )
    body = custom_job(
        pool(
            script, args=["--out=$(AIP_MODEL_DIR)", "$$(X)"], env=[{"name": "TOKEN", "value": "t-$(CLOUD_ML_REGION)"}]
        ),
        baseOutputDirectory={"outputUriPrefix": "gs://my-bucket/run"},
    )
    name = shared.create(body)
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED"
    times = [datetime.fromisoformat(job[field]) for field in ("createTime", "startTime", "endTime", "updateTime")]
    assert times == sorted(times)
    assert "error" not in job
    assert shared.lines(name) == ["['--out=gs://my-bucket/run/model/', '$(X)']"]
    assert (shared.data / "gcs/my-bucket/run/model/weights").read_text() == "t-us-central1"
    until(lambda: not labelled(name), "removal of the containers")


def test_failure_names_replica_and_exit_code(shared: RunningEmulator) -> None:
    name = shared.create(custom_job(pool("import sys; print('so far'); sys.exit('out of luck')")))
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_FAILED"
    assert job["error"]["code"] == 3
    assert re.fullmatch(
        r"The replica workerpool0-0 exited with a non-zero status of 1\. To find out more about why your job exited "
        r"please check the logs: https://console\.cloud\.google\.com/logs/viewer\?project=\d+"
        r"&resource=ml_job%2Fjob_id%2F"
        rf"{name.rpartition('/')[2]}&advancedFilter=\S+",
        job["error"]["message"],
    )
    entries = shared.entries(name, "severity>=ERROR AND resource.labels.task_name=workerpool0-0")
    assert [line_of(entry) for entry in entries] == ["out of luck"]
    assert entries[0]["severity"] == "ERROR"
    assert entries[0]["logName"].endswith("/logs/workerpool0-0")


def test_missing_executable_fails_job_with_docker_reason(shared: RunningEmulator) -> None:
    body = custom_job(pool("", command=["/no/such/program"]))
    job = shared.ended(shared.create(body))
    assert job["state"] == "JOB_STATE_FAILED"
    assert job["error"]["code"] == 3
    assert job["error"]["message"].startswith(
        "The replica workerpool0-0 exited with a non-zero status of 127. Termination reason: ContainerCannotRun. \n"
        " Termination log message: OCI runtime create failed: "
    )
    assert "/no/such/program" in job["error"]["message"]


def test_missing_image_fails_job_with_image_name(shared: RunningEmulator) -> None:
    job = shared.ended(shared.create(custom_job(pool("", imageUri="127.0.0.1:9/none/such:1"))))
    assert job["state"] == "JOB_STATE_FAILED"
    assert "127.0.0.1:9/none/such:1 cannot be pulled" in job["error"]["message"]


def test_a_job_is_cancelled_then_deleted_with_its_log(shared: RunningEmulator) -> None:
    name = shared.create(custom_job(pool(SLEEP)))
    shared.in_state(name, "JOB_STATE_RUNNING")
    until(lambda: shared.lines(name) == ["up"], "the first line")
    error = shared.call("DELETE", f"v1/{name}", expect=400)["error"]
    assert error["status"] == "FAILED_PRECONDITION"
    assert shared.call("POST", f"v1/{name}:cancel", {}) == {}
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_CANCELLED"
    assert job["error"]["code"] == 1
    assert shared.call("POST", f"v1/{name}:cancel") == {}
    operation = shared.call("DELETE", f"v1/{name}")
    assert operation["done"] is True
    assert operation["response"] == {"@type": "type.googleapis.com/google.protobuf.Empty"}
    assert shared.call("GET", f"v1/{operation['name']}") == operation
    assert operation["name"].rpartition("/operations/")[0] == name.rpartition("/customJobs/")[0]
    shared.call("GET", f"v1/{name}", expect=404)
    until(lambda: not (shared.data / "logs" / name.rpartition("/")[2]).exists(), "removal of the log")
    assert shared.call("DELETE", f"v1/{operation['name']}") == {}
    shared.call("GET", f"v1/{operation['name']}", expect=404)


def test_replicas_of_two_pools_resolve_each_other(shared: RunningEmulator) -> None:
    name = shared.create(custom_job(pool(MEET), pool(MEET, replicas=2)))
    job = shared.ended(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED", shared.lines(name)
    assert "workerpool1-0 workerpool1-1" in shared.lines(name)
    met = shared.entries(name, "severity=NOTICE")
    assert sorted(entry["resource"]["labels"]["task_name"] for entry in met) == [
        "workerpool0-0",
        "workerpool1-0",
        "workerpool1-1",
    ]
    assert len({json.dumps(entry["jsonPayload"]["peers"]) for entry in met}) == 1
    assert "severity" not in met[0]["jsonPayload"]


def test_log_pages_contain_each_line_once(shared: RunningEmulator) -> None:
    # The last one is longer than a frame of Docker's, and one entry all the same.
    name = shared.create(custom_job(pool("for i in range(9): print('line', i)\nprint('x' * 50_000 + 'end')")))
    shared.ended(name)
    job_id = name.rpartition("/")[2]
    for order in ("timestamp asc", "timestamp desc"):
        body = {
            "resourceNames": ["projects/my-project"],
            "filter": f'resource.labels.job_id="{job_id}" AND resource.labels.task_name!="service"',
            "orderBy": order,
            "pageSize": 4,
        }
        lines: list[str] = []
        while True:
            reply = shared.call("POST", "v2/entries:list", body)
            lines += map(line_of, reply.get("entries", []))
            if "nextPageToken" not in reply:
                break
            body["pageToken"] = reply["nextPageToken"]
        expected = [*(f"line {i}" for i in range(9)), "x" * 50_000 + "end"]
        assert lines == (expected if order == "timestamp asc" else expected[::-1])


def test_running_logs_can_be_followed_from_a_time(shared: RunningEmulator) -> None:
    name = shared.create(custom_job(pool("import time\nfor i in range(3): print(i, flush=True)\ntime.sleep(600)")))
    until(lambda: shared.lines(name) == ["0", "1", "2"], "three lines")
    second = shared.entries(name, "resource.labels.task_name=workerpool0-0")[1]
    later = f'timestamp>="{second["timestamp"]}" AND resource.labels.task_name=workerpool0-0'
    followed = shared.entries(name, later)
    assert [line_of(entry) for entry in followed] == ["1", "2"]
    assert followed[0]["insertId"] == second["insertId"]
    shared.call("POST", f"v1/{name}:cancel")
    shared.ended(name)


def test_approximated_field_is_noted_in_log(shared: RunningEmulator) -> None:
    name = shared.create(custom_job(pool("pass"), enableWebAccess=True))
    notes = shared.entries(name, "severity=WARNING AND resource.labels.task_name=service")
    text = "enableWebAccess: on this machine a shell runs in a terminal: `vertex-emulator shell`, "
    assert text + "as pages at webAccessUris say." in [note["textPayload"] for note in notes]
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
