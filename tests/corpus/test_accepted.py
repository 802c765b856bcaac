"""Specs as people write them preview clean, or are refused with the rule that is expected."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from vertex_training.errors import DeclarationErrors
from vertex_training.jobs.job import as_submitted
from vertex_training.jobs.provider import (
    CustomJobProvider,
    HyperparameterTuningJobProvider,
    TrainingPipelineProvider,
    drifted_spec,
)
from vertex_training.plan.training import Defaults
from vertex_training.schema import interpolation

from tests.components.fakes import Ground
from tests.corpus import discovery
from tests.corpus.specs import Spec, settings, specs
from tests.vertex_api.test_client import HELD, Api
from vertex_api.client import Client
from vertex_api.job import Job, stored_job
from vertex_api.messages import int64_as_text
from vertex_api.names import location_name

PARENT = location_name("acme-dev", "us-central1")
GROUND = Ground(
    defaults=Defaults("gs://acme-dev-staging/jobs"), full_location_name=f"//aiplatform.googleapis.com/{PARENT}"
)
PROVIDERS = {
    provider.kind: provider()
    for provider in (CustomJobProvider, HyperparameterTuningJobProvider, TrainingPipelineProvider)
}
ALL = tuple(specs())
CLEAN = [spec for spec in ALL if not spec.refused]


def said(spec: Spec, root: Path) -> list[str]:
    """What a preview says is wrong with a spec, without the places."""
    refused = spec.declare(root)
    if refused:
        return refused
    try:
        read = settings(root)
    except DeclarationErrors as errors:
        return [f"{problem.path}: {problem.message}" for problem in errors.problems]
    assert read.jobs
    for job in read.jobs:
        checked(job.job, job.name)
    return []


def checked(spec: Job, name: str) -> Any:
    """The spec that the provider of a job passes on to the engine: complete, and without a failure."""
    whole = as_submitted(spec, GROUND.defaults, name).fields
    props = {"owner": f"team/dev/{name}", "parent": GROUND.full_location_name, "spec": whole}
    result = PROVIDERS[spec.kind].check({}, props)
    assert result.failures == []
    return result.inputs["spec"]


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_specs_preview_clean_or_with_expected_violations(spec: Spec, tmp_path: Path) -> None:
    found = sorted(said(spec, tmp_path))
    assert len(found) == len(spec.refused), found
    assert [line for line, begins in zip(found, sorted(spec.refused), strict=True) if not line.startswith(begins)] == []


@pytest.mark.parametrize("spec", CLEAN, ids=lambda spec: spec.name)
def test_requests_follow_the_discovery_document(spec: Spec, tmp_path: Path, api: Api, client: Client) -> None:
    spec.declare(tmp_path)
    for job in settings(tmp_path).jobs:
        whole = interpolation.expand(checked(job.job, job.name), {})
        assert discovery.broken(job.kind.type, int64_as_text(job.kind.typed_dict, whole)) == []
        api.replies({**HELD, "name": f"{PARENT}/{job.kind.collection}/7"})
        client.create(job.kind, PARENT, whole, check_before=lambda: None, find_created=lambda: None)
        method, path, _, sent = api.asked[-1]
        assert (method, path) == ("POST", f"/v1/{PARENT}/{job.kind.collection}")
        assert drifted_spec(whole, stored_job(job.kind, sent).fields, {}) == whole


def test_one_stack_can_declare_all_specs(tmp_path: Path) -> None:
    for spec in CLEAN:
        assert spec.declare(tmp_path) == []
    jobs = settings(tmp_path).jobs
    assert len(jobs) >= len(CLEAN) >= 60


def test_every_source_has_enough_described_specs() -> None:
    ways = Counter(spec.way for spec in ALL)
    assert ways.total() >= 60
    assert min(ways.values()) >= 8 and set(ways) == {"gcloud", "rest", "sdk", "pipelines", "legacy"}
    assert [spec.name for spec in ALL if len(spec.shape) < 12 or spec.shape.startswith("refused: ")] == []
