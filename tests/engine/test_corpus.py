"""The engine previews one stack with all specs of the corpus."""

from collections import Counter

from tests.corpus.specs import specs
from tests.engine.cloud import CloudProject

KINDS = ("CustomJob", "HyperparameterTuningJob", "TrainingPipeline")


def test_all_clean_specs_preview_in_one_stack(cloud: CloudProject) -> None:
    clean = [spec for spec in specs() if not spec.refused]
    for spec in clean:
        assert spec.declare(cloud.root) == []
    cloud.stack |= {"vertex-training:region": "us-central1", "vertex-training:include": ["training"]}
    cloud.declare()
    made = Counter((step["op"], step["type"].rpartition(":")[2]) for step in cloud.steps())
    jobs = {kind: made["create", kind] for kind in KINDS}
    assert min(jobs.values()) > 5
    assert sum(jobs.values()) > len(clean) >= 60


def test_a_preview_warns_once_about_unavailable_regional_resources(cloud: CloudProject) -> None:
    machine = {"machineType": "ct5lp-hightpu-1t", "tpuTopology": "1x1"}
    cloud.job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] = machine
    cloud.declare()
    shown = cloud.pulumi("preview", "--stack", "dev")
    assert "TPU_V5_LITEPOD is not offered for training in europe-west4 as of" in shown
    # The engine shows the first line of a message again while it is at work.
    assert shown.count("Tables change: see ") == 1
    assert "(train); offered in us-central1, us-east1, us-west1, us-west4" in shown
