"""Submit many jobs to an API that limits submissions, and compare the time with the least that the limit allows.

    python -m tests.faults.paced_jobs --jobs 200 --per-minute 600
    python -m tests.faults.paced_jobs --jobs 200 --per-minute 600 --faulty-api

With `--faulty-api` the API also answers requests with 503 again and again, and cuts connections after a job was
created. The exit code is 1 if a job is missing or is there twice, or if without faults the time is more than 1.1 times
the ideal one. Docker is needed.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import requests

from tests.engine.project import PARENT, SLEEP, Project, create_project
from tests.vertex_emulator.running import IMAGE, PATIENCE_SECONDS
from vertex_api.retry import least_seconds

MAX_RATIO = 1.1
_POLL_SECONDS = 0.2
_JOBS_FOR_A_FAULT = 7
"""For as many jobs one request gets 503 and one answer is lost: some 15 % of the submissions each."""


def declare_jobs(project: Project, jobs: int, per_minute: int) -> None:
    container = {"imageUri": IMAGE, "command": [*SLEEP, "3600"]}
    pools = [{"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}]
    project.declarations = {
        "customJobs": {f"job-{number}": {"jobSpec": {"workerPoolSpecs": pools}} for number in range(jobs)}
    }
    project.stack["vertex-training:submissionsPerMinute"] = per_minute
    project.declare()


def submit_jobs(project: Project, jobs: int, per_minute: int, *, faulty_api: bool) -> float:
    """Bring the jobs up and return how many seconds `pulumi` took. Raises AssertionError if it fails."""
    declare_jobs(project, jobs, per_minute)
    project.start_emulator()
    inject(project, kind="rate", per_minute=per_minute)
    # What is measured is submissions: the jobs wait for machines, and no container is started.
    inject(project, kind="stockout", machine_type="n1-standard-4", after=3600, count=jobs)
    begin = time.monotonic()
    run = project.start_pulumi("up", "--yes", "--skip-preview", "--stack", "local")
    injected = 0
    while True:
        # By the number of jobs and not by the clock: the last job's retries would meet a new fault each time.
        while faulty_api and injected < count_jobs(project) // _JOBS_FOR_A_FAULT:
            injected += 1
            inject(project, kind="unavailable")
            inject(project, kind="lost-answer")
        try:
            output, _ = run.communicate(timeout=_POLL_SECONDS)
            break
        except subprocess.TimeoutExpired:
            continue
    assert run.returncode == 0, output
    requests.delete(f"{project.endpoint()['url']}/vertex_emulator/faults", timeout=PATIENCE_SECONDS).raise_for_status()
    return time.monotonic() - begin


def find_wrong_jobs(project: Project, jobs: int) -> dict[str, int]:
    """Return how often each job exists that does not exist once."""
    names = Counter(job["labels"]["pulumi_name"] for job in list_all_jobs(project))
    declared = {f"job-{number}" for number in range(jobs)}
    return {name: names[name] for name in declared | names.keys() if names[name] != (name in declared)}


def inject(project: Project, **fault: Any) -> None:
    url = f"{project.endpoint()['url']}/vertex_emulator/faults"
    requests.post(url, json=fault, timeout=PATIENCE_SECONDS).raise_for_status()


def count_jobs(project: Project) -> int:
    """Count the jobs by a request that faults do not hit."""
    status = requests.get(f"{project.endpoint()['url']}/vertex_emulator/status", timeout=PATIENCE_SECONDS).json()
    return sum(status["jobs"].values())


def list_all_jobs(project: Project) -> list[dict[str, Any]]:
    jobs, token = list[dict[str, Any]](), ""
    while True:
        page = project.request("GET", f"{PARENT}/customJobs?pageSize=100&pageToken={token}")
        jobs += page.get("customJobs", [])
        token = page.get("nextPageToken", "")
        if not token:
            return jobs


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.faults.paced_jobs", description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--per-minute", type=int, default=600)
    parser.add_argument("--faulty-api", action="store_true", help="with 503s and lost answers")
    options = parser.parse_args()
    with create_project(Path(tempfile.mkdtemp(prefix="vertex-paced-jobs-"))) as project:
        seconds = submit_jobs(project, options.jobs, options.per_minute, faulty_api=options.faulty_api)
        end = time.time()
        found, wrong = list_all_jobs(project), find_wrong_jobs(project, options.jobs)
    times = sorted(datetime.fromisoformat(job["createTime"]).timestamp() for job in found)
    taken, ideal = times[-1] - times[0], options.jobs * 60 / options.per_minute
    print(f"{len(found)} jobs in {seconds:.1f} s of pulumi, missing or there more than once: {wrong or 'none'}")
    print(f"first to last job {taken:.1f} s, ideal {ideal:.1f} s, ratio {taken / ideal:.2f} (at most {MAX_RATIO})")
    # A create that gets 503 takes a turn as well, as the service may count it.
    calls = options.jobs + options.faulty_api * (options.jobs // _JOBS_FOR_A_FAULT)
    least = least_seconds(calls, options.per_minute)
    print(f"{calls} submissions take at least {least:.1f} s at this pace, after a burst; of the rest of pulumi's time,")
    print(f"{times[0] - end + seconds:.1f} s are before the first job and {end - times[-1]:.1f} s after the last one")
    return 1 if wrong or (taken > MAX_RATIO * ideal and not options.faulty_api) else 0


if __name__ == "__main__":
    sys.exit(main())
