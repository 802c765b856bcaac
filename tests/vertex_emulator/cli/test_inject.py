"""`vertex-emulator inject` against a real emulator."""

import signal
import time
from typing import Any

import pytest
import requests

from tests.vertex_emulator.running import PARENT, RunningEmulator, command, custom_job, pool
from vertex_emulator.errors import InvalidFault
from vertex_emulator.faults import FAULT_KINDS, MAX_PENDING_FAULTS, InjectedFault

SLEEP = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(600)"


def inject(emulator: RunningEmulator, *arguments: str) -> str:
    done = command("inject", *arguments, data=emulator.data)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_faults_survive_restart_and_take_effect_once(own: RunningEmulator) -> None:
    inject(own, "fail", "--code", "13", "--message", "as told", "--name", "train-*")
    inject(own, "oom", "--replica", "workerpool1-0", "--after", "0.5")
    inject(own, "quota")
    own.end(signal.SIGKILL)
    own.start()
    assert inject(own, "--list").splitlines() == [
        "fail for the next job (name=train-*, code=13, message=as told)",
        "oom for the next job (after=0.5, replica=workerpool1-0)",
        "quota for the next job",
    ]
    assert "injected   quota for the next job" in command("status", data=own.data).stdout

    error = own.call("POST", f"v1/{PARENT}/customJobs", custom_job(pool("pass")), expect=429)["error"]
    assert (error["status"], error["code"]) == ("RESOURCE_EXHAUSTED", 429)
    assert error["message"].startswith("The following quota metrics exceed quota limits: aiplatform.googleapis.com/")
    assert own.call("GET", f"v1/{PARENT}/customJobs") == {}

    spared = own.create(custom_job(pool("pass"), name="other"))
    struck = own.create(custom_job(pool(SLEEP), name="train-1"))
    distributed = own.create(custom_job(pool(SLEEP), pool(SLEEP)))
    assert own.ended(spared)["state"] == "JOB_STATE_SUCCEEDED"
    assert own.ended(struck)["error"] == {"code": 13, "message": "as told"}
    error = own.ended(distributed)["error"]
    advice = "Specify a machine with larger memory and try again."
    assert error == {"code": 8, "message": f"Replicas low on memory: workerpool1. {advice}"}
    assert own.ended(own.create(custom_job(pool("pass"), name="train-2")))["state"] == "JOB_STATE_SUCCEEDED"
    assert inject(own, "--list") == "no pending faults\n"
    done = command("inject", "preempt", "--name", "trian-2", data=own.data)
    assert "the fault waits for a job: none so far is called trian-2; did you mean train-2?" in done.stderr


def test_faults_that_wait_can_be_cleared(shared: RunningEmulator) -> None:
    inject(shared, "preempt", "--name", "nobody", "--count", "3")
    assert "preempt for the next 3 jobs (name=nobody)" in inject(shared, "--list")
    cleared = "cleared 1\nhad hit nothing: preempt for the next 3 jobs (name=nobody)\n"
    assert inject(shared, "--clear") == cleared
    assert inject(shared, "--list") == "no pending faults\n"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "kind is missing"),
        ({"kind": "fire"}, "kind is 'fire'"),
        ({"kind": "fail"}, "one of code"),
        ({"kind": "fail", "code": 3, "exit_code": 3}, "one of code"),
        ({"kind": "fail", "code": 17}, "code is 17"),
        ({"kind": "fail", "exit_code": 0}, "exit_code is 0"),
        ({"kind": "fail", "code": True}, "code is True"),
        ({"kind": "oom", "code": 3}, "belong to kind fail"),
        ({"kind": "oom", "count": 0}, "count is 0"),
        ({"kind": "oom", "times": 1001}, "times is 1001"),
        ({"kind": "oom", "after": -1}, "after is -1"),
        ({"kind": "oom", "after": float("nan")}, "after is nan"),
        ({"kind": "oom", "replica": "chief"}, "replica is chief"),
        ({"kind": "oom", "nmae": "x"}, "nmae is not one of the fields"),
        ({"kind": "rate"}, "kind rate needs per_minute"),
        ({"kind": "rate", "per_minute": 0}, "per_minute is 0"),
        ({"kind": "rate", "per_minute": 60, "name": "x"}, "kind rate hits requests of any job"),
        ({"kind": "oom", "per_minute": 60}, "kind oom has no per_minute"),
        ({"kind": "slow"}, "kind slow needs seconds"),
        ({"kind": "slow", "seconds": -1}, "seconds is -1"),
        ({"kind": "slow", "seconds": "1"}, "seconds is '1'; it must be of type float"),
        ({"kind": "stockout"}, "kind stockout needs machine_type"),
        ({"kind": "oom", "run_for": 5}, "kind oom has no run_for"),
        ({"kind": "second-start", "run_for": -1}, "run_for is -1"),
        ({"kind": "second-start", "run_for": "5"}, "run_for is '5'; it must be of type float"),
        ({"kind": "second-start", "after": float("inf")}, "after is inf"),
        ({"kind": "second-start", "exit_code": 1}, "belong to kind fail, not to second-start"),
        ({"kind": "oom", "wait": True}, "wait and port belong to kind debug, not to oom"),
        ({"kind": "debug", "wait": "yes"}, "wait is 'yes'; it must be of type bool"),
        ({"kind": "debug", "port": 65536}, "port is 65536"),
        ({"kind": "debug", "port": True}, "port is True; it must be of type int"),
        ({"kind": "debug", "port": -1}, "port is -1"),
        ({"kind": "debug", "port": 10**30}, "port is 10000"),
        ({"kind": "oom", "name": "[" * 257}, "name has 257 characters; it must have 256 at most"),
        ({"kind": "fail", "code": 3, "message": "x" * 10_001}, "message has 10001 characters"),
        ({"kind": "oom", "replica": "workerpool0-" + "9" * 30}, "replica has 42 characters"),
        ({"kind": "stockout", "machine_type": "m" * 129}, "machine_type has 129 characters"),
        ({"kind": "oom", "after": 10**400}, "after is 1000"),
        ({"kind": "oom", "after": []}, "after is .*; it must be of type float"),
        ({"kind": "oom", "count": 1.5}, "count is 1.5; it must be of type int"),
        ({"kind": "oom", "times": 10**19}, "times is 10000"),
        ({"kind": ["oom"]}, "it must be of type str"),
        ({"kind": "slow", "seconds": float("nan")}, "seconds is nan"),
        ({"kind": "slow", "seconds": 601}, "seconds is 601"),
        ({"kind": "rate", "per_minute": -1}, "per_minute is -1"),
        ({"kind": "oom", "__class__": 1}, "__class__ is not one of the fields"),
    ],
)
def test_invalid_fault_is_rejected_by_field_and_value(body: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidFault, match=told):
        InjectedFault.parse(body)


def test_second_starts_default_to_the_capture() -> None:
    fault = InjectedFault.parse({"kind": "second-start"})
    assert (fault.after, fault.run_for) == (70, 30)
    assert fault.to_json() == {"kind": "second-start"}
    at_once = InjectedFault.parse({"kind": "second-start", "after": 0, "run_for": 5})
    assert InjectedFault.parse(at_once.to_json()) == at_once


def test_bad_fault_prints_one_line_and_answers_400(shared: RunningEmulator) -> None:
    done = command("inject", "fail", "--code", "99", data=shared.data)
    assert (done.returncode, done.stderr) == (
        2,
        "vertex-emulator: code is 99; it must be a google.rpc.Code, from 1 to 16\n",
    )
    error = shared.call("POST", "vertex_emulator/faults", {"kind": "fail", "code": 99}, expect=400)["error"]
    assert error["status"] == "INVALID_ARGUMENT"
    assert "code is 99" in error["message"]


@pytest.mark.parametrize("value", ["NaN", "1e400", "-Infinity", "9" * 5000, "[" * 3000, '"\\ud800"', "{}", "null"])
def test_values_that_are_no_numbers_are_refused(shared: RunningEmulator, value: str) -> None:
    body = f'{{"kind": "oom", "after": {value}}}'
    headers = {"Content-Type": "application/json"}
    reply = shared.http.post(f"{shared.url}/vertex_emulator/faults", data=body, headers=headers)
    assert (reply.status_code, reply.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert shared.call("GET", "vertex_emulator/status")["faults"] == []


@pytest.mark.parametrize("name", ["[" * 256, "*a" * 128, "[!" * 128, "?" * 256])
def test_the_worst_patterns_take_little_work(name: str) -> None:
    """A pattern is looked at when a job is created; one of 50,000 brackets took a minute of the processor."""
    fault = InjectedFault.parse({"kind": "oom", "name": name})
    begin = time.process_time()
    assert not fault.matches("b" * 128)
    assert time.process_time() - begin < 1  # 0.01 s measured


def test_pending_faults_are_limited(own: RunningEmulator) -> None:
    for _ in range(MAX_PENDING_FAULTS):
        own.call("POST", "vertex_emulator/faults", {"kind": "oom", "name": "nobody"})
    error = own.call("POST", "vertex_emulator/faults", {"kind": "oom"}, expect=400)["error"]
    assert error["message"] == "100 faults are pending, which is the most: remove them with --clear"
    counted, *missed, more = inject(own, "--clear").splitlines()
    assert (counted, len(missed), more) == ("cleared 100", 10, "and 90 more")


def test_a_denied_request_creates_no_job(own: RunningEmulator) -> None:
    jobs = f"v1/{PARENT}/customJobs"
    inject(own, "denied", "--name", "secret")
    own.create(custom_job(pool("pass"), name="open"))
    error = own.call("POST", jobs, custom_job(pool("pass"), name="secret"), expect=403)["error"]
    resource = f"'//aiplatform.googleapis.com/{PARENT}'"
    permission = "aiplatform.customJobs.create"
    assert error["message"] == f"Permission '{permission}' denied on resource {resource} (or it may not exist)."
    assert error["status"] == "PERMISSION_DENIED"
    details = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "IAM_PERMISSION_DENIED",
        "domain": "aiplatform.googleapis.com",
        "metadata": {"permission": permission, "resource": PARENT},
    }
    assert error["details"] == [details]
    own.create(custom_job(pool("pass"), name="secret"))
    assert [job["displayName"] for job in own.call("GET", jobs)["customJobs"]] == ["secret", "open"]


def test_request_faults_hit_requests_about_jobs(own: RunningEmulator) -> None:
    jobs = f"v1/{PARENT}/customJobs"
    inject(own, "unavailable")
    inject(own, "slow", "0.1", "--count", "2")
    inject(own, "rate", "--per-minute", "1")
    inject(own, "lost-answer", "--name", "lost")
    assert inject(own, "--list").splitlines() == [
        "unavailable for the next request",
        "slow for the next 2 requests (seconds=0.1)",
        "rate until cleared (per_minute=1)",
        "lost-answer for the next job (name=lost)",
    ]
    assert own.call("GET", jobs, expect=503)["error"]["status"] == "UNAVAILABLE"

    with pytest.raises(requests.ConnectionError):
        own.create(custom_job(pool("pass"), name="lost"))
    assert [job["displayName"] for job in own.call("GET", jobs)["customJobs"]] == ["lost"]

    error = own.call("POST", jobs, custom_job(pool("pass")), expect=429)["error"]
    assert error["message"].startswith("Quota exceeded for quota metric '")
    assert (error["status"], error["details"][0]["reason"]) == ("RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED")
    own.end(signal.SIGKILL)
    own.start()
    assert inject(own, "--list") == "rate until cleared (per_minute=1)\n"
    inject(own, "--clear")
    own.create(custom_job(pool("pass")))


def test_help_shows_the_kinds_and_examples(tmp_path: Any) -> None:
    done = command("inject", "--help", data=tmp_path)
    assert done.returncode == 0
    assert "vertex-emulator inject preempt --after 10" in done.stdout
    for kind in FAULT_KINDS:
        assert f"\n  {kind} " in done.stdout
