"""Cost and guardrails through the real engine, on the target gcp: a stand-in for the provider, no cloud."""

from tests.engine.cloud import CloudProject
from tests.engine.project import SEARCH

ESTIMATE = "list-price estimate, prices as of "


def test_a_preview_shows_cost_and_quota_once(cloud: CloudProject) -> None:
    cloud.declarations["hyperparameterTuningJobs"] = {"search": SEARCH}
    cloud.declare()
    shown = cloud.pulumi("preview", "--stack", "dev")
    assert shown.count(ESTIMATE) == 1
    # n1-standard-4 in europe-west4: 4 x 0.0400223 + 15 x 0.0053636 + 100 x 0.21505 / 730 = 0.2700022; 7 days: 45.36.
    # search: 2 at once, 4 in all.
    for line in (
        "Cost in europe-west4: 0.81 USD an hour, 226.80 USD at most",
        "search     0.54   181.44  7 days, as it has no timeout  cpus 8, pd_ssd 200",
        "train      0.27    45.36  7 days, as it has no timeout  cpus 4, pd_ssd 100",
        "stack      0.81   226.80                                cpus 12, pd_ssd 300",
    ):
        assert line in shown
    del cloud.declarations["hyperparameterTuningJobs"]
    cloud.declare()
    assert ESTIMATE not in cloud.up()  # --skip-preview: what is asked for has been decided
    cloud.stack["vertex-training:prices"] = {
        "asOf": "2026-11-01",
        "source": "our contract",
        "vcpu": {"N1": {"europe-west4": 1.0}},
    }
    cloud.stack["vertex-training:guardrails"] = {"maxHourlyCost": 100, "machineTypes": ["n1-*"]}
    cloud.declare()
    # 4 x 1 + 15 x 0.0053636 + 0.0294589 = 4.1099129
    assert " 4.11 " in cloud.pulumi("preview", "--stack", "dev", "--expect-no-changes")


def test_a_broken_guardrail_blocks_and_names_its_line(cloud: CloudProject) -> None:
    cloud.stack["vertex-training:guardrails"] = {"machineTypes": ["g2-*"], "requireTimeout": True, "maxHourlyCost": 0.2}
    cloud.declare()
    output = cloud.up(fails=True)
    assert "3 problems in what is declared:" in output
    assert (
        "training/jobs.yaml:11: customJobs.train.jobSpec.workerPoolSpecs[0].machineSpec.machineType: "
        'guardrails.machineTypes: "n1-standard-4" is not allowed here; allowed: g2-*'
    ) in output
    assert "jobs.yaml:8: customJobs.train.jobSpec.scheduling.timeout: guardrails.requireTimeout: is requi" in output
    assert "jobs.yaml:7: customJobs.train: guardrails.maxHourlyCost: 0.27 USD an hour by list price; all" in output
    assert ESTIMATE not in output
    assert not cloud.record.exists()
