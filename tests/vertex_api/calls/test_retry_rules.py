"""The retry rules: which call is made again after which error, for how long, and after which pause."""

from typing import get_args

import pytest

from vertex_api.calls.retry_rules import (
    MAX_PAUSE_SECONDS,
    NEW_GRANT,
    OUTAGE,
    RATE_LIMIT,
    CallKind,
    RetryRule,
    compute_retry_pause_or_none,
    find_retry_rule_or_none,
)
from vertex_api.client_errors import (
    InvalidRequest,
    NotFound,
    OperationUnfinished,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
    Unavailable,
    VertexError,
)

VERBS = get_args(CallKind)
ACT_AS = (
    "You do not have permission to act as service_account: trainer@acme.iam.gserviceaccount.com. (or it may not exist)"
)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "read_log"])
@pytest.mark.parametrize(("error", "rule"), [(RateLimited("x"), RATE_LIMIT), (Unavailable("x"), OUTAGE)], ids=str)
def test_a_limit_and_an_outage_are_retried(verb: CallKind, error: VertexError, rule: RetryRule) -> None:
    assert find_retry_rule_or_none(verb, error) == rule


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "error",
    [
        QuotaExceeded("The following quota metrics exceed quota limits: x", ["x"]),
        InvalidRequest("machineType: n9 is not known"),
        PermissionDenied("Permission 'aiplatform.customJobs.create' denied"),
        NotFound("x"),
        OperationUnfinished("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_does_not_pass_is_not_retried(verb: CallKind, error: VertexError) -> None:
    assert find_retry_rule_or_none(verb, error) is None


@pytest.mark.parametrize("error", [Unavailable("x"), RateLimited("x")], ids=lambda error: type(error).__name__)
def test_logs_are_read_once(error: VertexError) -> None:
    assert find_retry_rule_or_none("read_log", error) is None


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest(ACT_AS),
        PermissionDenied("Vertex AI API has not been used in project 123 before or it is disabled. Enable it by …"),
        InvalidRequest("Service agents are being provisioned (https://…). Please retry in a few minutes."),
        InvalidRequest("The service agent does not have permission to access Artifact Registry repository x."),
    ],
    ids=lambda error: str(error)[:20],
)
def test_a_new_account_or_grant_is_waited_for_at_creation_only(error: VertexError) -> None:
    assert {verb for verb in VERBS if find_retry_rule_or_none(verb, error)} == {"create"}
    assert find_retry_rule_or_none("create", error) == NEW_GRANT


def test_only_an_outage_may_hide_a_created_job() -> None:
    assert [rule.may_be_done for rule in (RATE_LIMIT, OUTAGE, NEW_GRANT)] == [False, True, False]


def test_pauses_double_up_to_a_maximum() -> None:
    pauses = [compute_retry_pause_or_none(RATE_LIMIT, tries, 0.0, None, 0.0) for tries in range(1, 8)]
    assert pauses == [1, 2, 4, 8, 16, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS]


def test_half_of_a_pause_is_random() -> None:
    assert compute_retry_pause_or_none(RATE_LIMIT, 3, 0.0, None, 1.0) == 2.0
    assert compute_retry_pause_or_none(RATE_LIMIT, 3, 0.0, None, 0.5) == 3.0


def test_a_requested_pause_is_heeded_within_the_deadline() -> None:
    assert compute_retry_pause_or_none(OUTAGE, 1, 0.0, 30.0, 0.0) == 30.0
    assert compute_retry_pause_or_none(OUTAGE, 6, 0.0, 0.5, 0.0) == MAX_PAUSE_SECONDS
    assert compute_retry_pause_or_none(OUTAGE, 1, 0.0, 3600.0, 0.0) is None


@pytest.mark.parametrize("rule", [RATE_LIMIT, OUTAGE, NEW_GRANT])
def test_retries_end_at_the_deadline(rule: RetryRule) -> None:
    assert compute_retry_pause_or_none(rule, 9, rule.seconds - MAX_PAUSE_SECONDS, None, 0.0) == MAX_PAUSE_SECONDS
    assert compute_retry_pause_or_none(rule, 9, rule.seconds - MAX_PAUSE_SECONDS + 1, None, 0.0) is None
