"""All specs that people write stand in one stack, and the engine previews it."""

from collections import Counter

from tests.corpus.specs import specs
from tests.engine.cloud import CloudProject

KINDS = ("CustomJob", "HyperparameterTuningJob", "TrainingPipeline")


def test_every_clean_spec_of_the_corpus_previews_in_one_stack(cloud: CloudProject) -> None:
    clean = [spec for spec in specs() if not spec.refused]
    for spec in clean:
        assert spec.declare(cloud.root) == []
    cloud.stack |= {"vertex-training:region": "us-central1", "vertex-training:include": ["training"]}
    cloud.declare()
    made = Counter((step["op"], step["type"].rpartition(":")[2]) for step in cloud.steps())
    jobs = {kind: made["create", kind] for kind in KINDS}
    assert min(jobs.values()) > 5
    assert sum(jobs.values()) > len(clean) >= 60
