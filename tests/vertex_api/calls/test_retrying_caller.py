"""The caller: calls that are made again until they succeed, are found done, or are given up together."""

from collections.abc import Callable

import pytest

from tests.vertex_api.clock import Clock
from vertex_api.calls import retrying_caller, submission_pace
from vertex_api.calls.retry_rules import NEW_GRANT, OUTAGE, RATE_LIMIT, CallKind, RetryRule
from vertex_api.calls.retrying_caller import RetryingCaller
from vertex_api.calls.submission_pace import SubmissionPace
from vertex_api.client_errors import InvalidRequest, PermissionDenied, RateLimited, Unavailable, VertexError

OUT, LIMITED = Unavailable("no answer"), RateLimited("too many")
TOO_NEW = PermissionDenied("You do not have permission to act as service_account x")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(retrying_caller, "time", clock)
    monkeypatch.setattr(submission_pace, "time", clock)
    return clock


def failing(*errors: VertexError) -> Callable[[], str]:
    """An attempt that fails with these errors, one after the other, and then succeeds."""
    left = list(errors)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return attempt


def always(error: VertexError) -> Callable[[], str]:
    def attempt() -> str:
        raise error

    return attempt


def test_a_call_is_made_again_until_it_succeeds(clock: Clock) -> None:
    assert RetryingCaller().call("get", failing(OUT, LIMITED, OUT)) == "done"
    assert len(clock.naps) == 3


@pytest.mark.parametrize(("error", "rule"), [(OUT, OUTAGE), (LIMITED, RATE_LIMIT), (TOO_NEW, NEW_GRANT)])
def test_a_call_is_given_up_after_its_deadline(clock: Clock, error: VertexError, rule: RetryRule) -> None:
    began = clock.now
    with pytest.raises(type(error), match=str(error)):
        RetryingCaller().call("create", always(error))
    assert 0.8 * rule.seconds < clock.now - began <= rule.seconds


def test_an_error_that_stays_is_raised_at_once(clock: Clock) -> None:
    with pytest.raises(InvalidRequest):
        RetryingCaller().call("create", always(InvalidRequest("x")))
    assert not clock.naps


def test_calls_of_one_client_give_up_together(clock: Clock) -> None:
    caller = RetryingCaller()
    for _ in range(1000):
        with pytest.raises(Unavailable):
            caller.call("get", always(OUT))
    assert sum(clock.naps) <= OUTAGE.seconds


def test_an_answer_ends_an_outage(clock: Clock) -> None:
    caller = RetryingCaller()
    with pytest.raises(Unavailable):
        caller.call("get", always(OUT))
    assert caller.call("list", failing()) == "done"
    assert caller.call("get", failing(OUT, OUT)) == "done"


def test_an_outage_of_long_ago_is_forgotten(clock: Clock) -> None:
    caller = RetryingCaller()
    with pytest.raises(Unavailable):
        caller.call("get", always(OUT))
    clock.sleep(1000)
    assert caller.call("get", failing(OUT)) == "done"


def test_a_submission_is_looked_for_after_its_answer_was_lost(clock: Clock) -> None:
    sent: list[float] = []

    def attempt() -> str:
        sent.append(clock.now)
        raise OUT

    assert RetryingCaller().call("create", attempt, find_earlier_result=lambda: "found") == "found"
    assert len(sent) == 1


def test_a_submission_that_was_refused_is_not_looked_for(clock: Clock) -> None:
    looks: list[str] = []
    RetryingCaller().call("create", failing(LIMITED, TOO_NEW), find_earlier_result=lambda: looks.append("look"))
    assert not looks


def test_a_lost_answer_is_looked_for_before_each_later_attempt(clock: Clock) -> None:
    looks: list[str] = []
    RetryingCaller().call("create", failing(OUT, LIMITED, LIMITED), find_earlier_result=lambda: looks.append("look"))
    assert len(looks) == 3


def test_each_attempt_is_checked_after_the_wait_for_its_turn(clock: Clock) -> None:
    checks: list[float] = []
    caller = RetryingCaller(SubmissionPace(1))
    for _ in range(2):
        caller.call("create", failing(), check_before=lambda: checks.append(clock.now))
    assert checks == [1000.0, 1060.0]


@pytest.mark.parametrize(("verb", "naps"), [("create", 1), ("delete", 1), ("get", 0), ("list", 0), ("cancel", 0)])
def test_creates_and_deletes_are_paced(clock: Clock, verb: CallKind, naps: int) -> None:
    caller = RetryingCaller(SubmissionPace(1))
    for _ in range(2):
        caller.call(verb, failing())
    assert len(clock.naps) == naps


def test_an_outage_is_told_once_a_minute(clock: Clock) -> None:
    told: list[str] = []
    caller = RetryingCaller(report=told.append)
    caller.call("get", failing(OUT, OUT, OUT))
    caller.call("get", failing(OUT))
    assert told == ["the API does not answer as it should (no answer); trying again for up to 120 s"]


def test_before_a_retry_the_server_may_be_started(clock: Clock) -> None:
    starts: list[float] = []
    RetryingCaller(before_retry=lambda: starts.append(clock.now)).call("list", failing(OUT))
    assert starts == [clock.now]
