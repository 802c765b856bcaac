"""What `pulumi up` says of a job for which there are no machines, through the real engine."""

import json
from datetime import UTC, datetime, timedelta
from textwrap import indent

from tests.engine.cloud import CloudProject
from tests.engine.project import SLEEP
from tests.forwarding_proxy import ForwardingProxy
from tests.vertex_emulator.running import command

STOCKOUT = "Resources are insufficient in region: europe-west4. Try a different region or use a different accelerator."
WHAT_MAY_HELP = """\
  what may help (each of these replaces the job):
    - scheduling: {strategy: FLEX_START, maxWaitDuration: 86400s}: the job waits for machines, here for at most a day, \
and starts when all are there; it takes preemptible quota
    - scheduling: {strategy: SPOT}: spare machines, which may be taken back; it takes preemptible quota
    - another machineType with NVIDIA_L4: g2-standard-12, g2-standard-4, g2-standard-16, g2-standard-32
    - a second stack in another region that offers NVIDIA_L4: europe-west2, asia-northeast3, asia-south1, \
asia-southeast1, and 6 more (`vertex-training docs regions`)
"""
QUEUED = f"""\
train: QUEUED for 12 min, as quota or machines are short
  it needs these quotas (aiplatform.googleapis.com/custom_model_training_NAME): g2_cpus 8, nvidia_l4_gpus 1, pd_ssd 100
  see and ask for more: https://console.cloud.google.com/iam-admin/quotas?project=acme-dev
{WHAT_MAY_HELP}"""
PENDING = f"train: PENDING for 12 min, as machines may be short, or an image is large\n{WHAT_MAY_HELP}"
FAILED = f"""\
train failed: {STOCKOUT}
  likely cause: the region is out of such machines for now: try later, or change the job as below
{WHAT_MAY_HELP}"""


class ScarceMachines(ForwardingProxy):
    """The emulator without machines: its first lists show jobs that are 12 minutes old and wait in `states`."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.states = ["JOB_STATE_QUEUED", "JOB_STATE_PENDING"]

    def edit_answer(self, method: str, path: str, content: bytes) -> bytes:
        """Return the answer; of a list of jobs, with the next state."""
        jobs = json.loads(content).get("customJobs") if method == "GET" and "/customJobs?" in path else None
        if not jobs or not self.states:
            return content
        state = self.states.pop(0)
        created = (datetime.now(UTC) - timedelta(minutes=12, seconds=5)).isoformat().replace("+00:00", "Z")
        return json.dumps({"customJobs": [{**job, "state": state, "createTime": created} for job in jobs]}).encode()


def test_a_job_without_machines_says_what_may_help(cloud: CloudProject) -> None:
    pool = cloud.job["jobSpec"]["workerPoolSpecs"][0]
    pool["machineSpec"] = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
    cloud.container.update({"command": SLEEP, "args": ["60"]})
    cloud.declare()
    done = command("inject", "stockout", "--machine-type=g2-standard-8", data=cloud.vertex.data)
    assert done.returncode == 0, done.stderr
    with ScarceMachines(cloud.vertex.url).serving() as url:
        cloud.environment["CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM"] = url
        shown = cloud.up(fails=True)
        summary = shown[shown.index("Diagnostics:") :]
        for message in (QUEUED, PENDING):
            assert summary.count(indent(message, "    ")) == 1, summary
        assert FAILED in "\n".join(line.removeprefix("    ") for line in summary.splitlines()), summary
