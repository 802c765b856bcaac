"""Granted quotas through the real engine: the gcp provider's call, answered by its stand-in."""

import json

from tests.engine.cloud import CloudProject

L4 = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
METRIC = "aiplatform.googleapis.com/custom_model_training_"
PAGE = "https://console.cloud.google.com/iam-admin/quotas?project=acme-dev"
TOO_LITTLE = (
    "nvidia_l4_gpus: train (needs 1) cannot run with the 0 granted to acme-dev in europe-west4; ask for more "
    f"{METRIC}nvidia_l4_gpus at {PAGE}"
)
TOO_MANY = (
    "cpus: all jobs at once need 8, more than the 6 granted to acme-dev in europe-west4, so some wait in "
    f"JOB_STATE_QUEUED for others to end: second (needs 4), third (needs 4); ask for more {METRIC}cpus at {PAGE}"
)
DENIED = "googleapi: Error 403: Permission 'cloudquotas.quotas.get' denied on resource, forbidden"


def grant(cloud: CloudProject, quotas: dict[str, int] | str) -> None:
    cloud.environment["GCP_STANDIN_QUOTAS"] = json.dumps(quotas)


def test_a_preview_shows_granted_quotas_and_shortages(cloud: CloudProject) -> None:
    shown = cloud.pulumi("preview", "--stack", "dev")
    table = (
        "    Quota in europe-west4: needed by all jobs at once, and granted to acme-dev\n"
        "      quota   needed    granted\n"
        "      cpus         4      2,200\n"
        "      pd_ssd     100  unlimited\n"
    )
    assert table in shown
    assert "warning" not in shown

    # Of L4, Google grants nothing to a new project. The other two jobs fit one by one.
    other = {"jobSpec": json.loads(json.dumps(cloud.job["jobSpec"]))}
    cloud.declarations["customJobs"] |= {"second": other, "third": other}
    cloud.job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] = L4
    cloud.declare()
    grant(cloud, {"g2_cpus": -1, "cpus": 6})
    shown = cloud.pulumi("preview", "--stack", "dev")
    assert "      nvidia_l4_gpus       1          0\n" in shown
    assert f"    warning: {TOO_MANY}\n    {TOO_LITTLE}\n" in shown

    grant(cloud, DENIED)
    shown = cloud.pulumi("preview", "--stack", "dev")
    (line,) = [line for line in shown.splitlines() if "acme-dev is granted" in line and "Stack" not in line]
    assert line == (
        "    Quota in europe-west4: what acme-dev is granted is unknown: permission is missing; grant whoever runs "
        "`pulumi` the role roles/cloudquotas.viewer"
    )
    assert "warning" not in shown


def test_the_guardrail_blocks_before_anything_is_created(cloud: CloudProject) -> None:
    stack_file = cloud.root / "stacks" / "Pulumi.dev.yaml"
    cloud.stack["vertex-training:guardrails"] = {"quotaCheck": "block"}
    cloud.declare()
    grant(cloud, {"cpus": 2})
    refused = "train (needs 4) cannot run with the 2 granted to acme-dev in europe-west4"
    shown = cloud.up(fails=True)
    assert (
        f"error: guardrails.quotaCheck: nothing is submitted, because quotas are too small:\n      cpus: {refused}"
        in shown
    )
    assert not cloud.record.exists()

    # A look-up that is refused blocks nothing. As YAML, `off` is no text.
    grant(cloud, DENIED)
    assert "acme-dev is granted is unknown: permission is missing" in cloud.up()
    stack_file.write_text(stack_file.read_text().replace("quotaCheck: block", "quotaCheck: off"))
    assert "Quota in" not in cloud.pulumi("preview", "--stack", "dev", "--expect-no-changes")
