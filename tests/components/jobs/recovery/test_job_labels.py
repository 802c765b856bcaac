"""Labels of submitted jobs: within the service's rules, and found by the filter of their stack."""

import re

import pytest
from vertex_training.jobs.recovery.job_labels import build_labels, build_stack_filter


@pytest.mark.parametrize("owner", ["team/dev/digits", "My.Team/Dev_1/a.b-c_d", f"{'p' * 70}/{'s' * 70}/{'n' * 70}"])
def test_labels_keep_the_service_s_rules(owner: str) -> None:
    labels = build_labels(owner, "0" * 32)
    assert list(labels) == ["pulumi_project", "pulumi_stack", "pulumi_name", "pulumi_token"]
    # Lower-case letters, digits, underscores and dashes, at most 63 (Google's page on labels).
    assert all(re.fullmatch("[a-z0-9_-]{1,63}", text) for text in [*labels, *labels.values()])


def test_a_stack_filter_matches_its_jobs_labels() -> None:
    labels = build_labels("My.Team/Dev/digits", "t")
    assert build_stack_filter("My.Team/Dev") == (
        f'labels.pulumi_project="{labels["pulumi_project"]}" AND labels.pulumi_stack="{labels["pulumi_stack"]}"'
    )
