"""The caller: calls that are made again until they succeed, are found done, or are given up together."""

import itertools
from collections.abc import Callable

import pytest

from tests.vertex_api.clock import Clock
from vertex_api import retry
from vertex_api.errors import Interrupted, InvalidRequest, PermissionDenied, RateLimited, Unavailable, VertexError
from vertex_api.retry import LOST_ANSWER_SECONDS, NEW_GRANT, OUTAGE, RATE_LIMIT, Caller, CallKind, Pace, Rule

OUT, LIMITED = Unavailable("no answer"), RateLimited("too many")
TOO_NEW = PermissionDenied("You do not have permission to act as service_account x")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(retry, "time", clock)
    monkeypatch.setattr(retry, "time", clock)
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
    assert Caller().call("get", failing(OUT, LIMITED, OUT)) == "done"
    assert len(clock.naps) == 3


@pytest.mark.parametrize(("error", "rule"), [(OUT, OUTAGE), (LIMITED, RATE_LIMIT), (TOO_NEW, NEW_GRANT)])
def test_a_call_is_given_up_after_its_deadline(clock: Clock, error: VertexError, rule: Rule) -> None:
    began = clock.now
    with pytest.raises(type(error), match=str(error)):
        Caller().call("create", always(error))
    look = LOST_ANSWER_SECONDS if rule.may_be_done else 0
    assert 0.8 * rule.seconds < clock.now - began - look <= rule.seconds


def test_an_error_that_stays_is_raised_at_once(clock: Clock) -> None:
    with pytest.raises(InvalidRequest):
        Caller().call("create", always(InvalidRequest("x")))
    assert not clock.naps


def test_calls_of_one_client_give_up_together(clock: Clock) -> None:
    caller = Caller()
    for _ in range(1000):
        with pytest.raises(Unavailable):
            caller.call("get", always(OUT))
    assert sum(clock.naps) <= OUTAGE.seconds


def test_an_answer_ends_an_outage(clock: Clock) -> None:
    caller = Caller()
    with pytest.raises(Unavailable):
        caller.call("get", always(OUT))
    assert caller.call("list", failing()) == "done"
    assert caller.call("get", failing(OUT, OUT)) == "done"


def test_an_outage_of_long_ago_is_forgotten(clock: Clock) -> None:
    caller = Caller()
    with pytest.raises(Unavailable):
        caller.call("get", always(OUT))
    clock.sleep(1000)
    assert caller.call("get", failing(OUT)) == "done"


def test_a_submission_is_looked_for_after_its_answer_was_lost(clock: Clock) -> None:
    sent: list[float] = []

    def attempt() -> str:
        sent.append(clock.now)
        raise OUT

    assert Caller().call("create", attempt, find_earlier_result=lambda: "found") == "found"
    assert len(sent) == 1


def test_a_submission_that_was_refused_is_not_looked_for(clock: Clock) -> None:
    looks: list[str] = []
    Caller().call("create", failing(LIMITED, TOO_NEW), find_earlier_result=lambda: looks.append("look"))
    assert not looks


def test_a_lost_answer_is_looked_for_twice(clock: Clock) -> None:
    looks: list[float] = []
    began = clock.now
    Caller().call("create", failing(OUT, LIMITED, LIMITED), find_earlier_result=lambda: looks.append(clock.now - began))
    assert looks[:2] == [30, 60]
    assert len(looks) == 4, "and once before each later attempt"


def test_a_lost_answer_is_looked_for_before_giving_up(clock: Clock) -> None:
    posts: list[float] = []

    def attempt() -> str:
        posts.append(clock.now)
        raise OUT

    def find() -> str | None:
        return "found" if len(posts) == 3 and clock.now >= posts[-1] + LOST_ANSWER_SECONDS else None

    assert Caller().call("create", attempt, find_earlier_result=find) == "found"
    assert [later - earlier for earlier, later in itertools.pairwise(posts)] == [60, 60]


def test_a_failed_look_does_not_hide_the_failure(clock: Clock) -> None:
    began = clock.now

    def find() -> None:
        if clock.now - began > OUTAGE.seconds:
            raise LIMITED

    with pytest.raises(Unavailable, match="no answer"):
        Caller().call("create", always(OUT), find_earlier_result=find)


def test_a_refusal_after_a_lost_answer_is_looked_behind(clock: Clock) -> None:
    sent: list[str] = []

    def attempt() -> str:
        sent.append("post")
        raise OUT if len(sent) == 1 else InvalidRequest("no")

    find = lambda: "found" if len(sent) == 2 else None  # noqa: E731
    assert Caller().call("create", attempt, find_earlier_result=find) == "found"


def test_a_second_create_keeps_the_first_result(clock: Clock) -> None:
    kept: list[tuple[str, float]] = []
    began = clock.now

    def keep_first(result: str) -> str:
        kept.append((result, clock.now - began))
        return "first"

    assert Caller().call("create", failing(OUT), keep_first=keep_first) == "first"
    assert kept == [("done", 90)]
    Caller().call("create", failing(LIMITED), keep_first=keep_first)
    Caller().call("create", failing(OUT), find_earlier_result=lambda: "found", keep_first=keep_first)
    assert len(kept) == 1, "there is nothing to remove after a refusal, or a single request"


def test_a_server_that_lists_at_once_is_not_waited_for(clock: Clock) -> None:
    looks: list[str] = []
    caller = Caller(lost_answer_seconds=0.0)
    caller.call("create", failing(OUT), find_earlier_result=lambda: looks.append("look"))
    assert len(looks) == 1 and sum(clock.naps) <= 1
    with pytest.raises(Unavailable):
        caller.call("create", always(OUT), find_earlier_result=lambda: looks.append("look"))


@pytest.mark.parametrize("error", [OUT, LIMITED, TOO_NEW])
def test_an_interruption_ends_a_wait_at_once(clock: Clock, error: VertexError) -> None:
    asked: list[float] = []

    def wait(seconds: float) -> bool:
        asked.append(seconds)
        return True

    with pytest.raises(Interrupted, match="stopped while it was to be tried again") as stopped:
        Caller(wait=wait).call("create", failing(error))
    assert len(asked) == 1
    assert ("the next `pulumi up` finds what it may have created" in str(stopped.value)) == (error is OUT)


def test_an_interruption_does_not_lose_a_result(clock: Clock) -> None:
    answers = iter([False, False, True])
    caller = Caller(wait=lambda seconds: next(answers))
    assert caller.call("create", failing(OUT), keep_first=lambda result: f"first {result}") == "first done"


def test_a_new_grant_is_told_each_minute(clock: Clock) -> None:
    told: list[str] = []
    with pytest.raises(PermissionDenied):
        Caller(report=told.append).call("create", always(TOO_NEW))
    assert 6 <= len(told) <= 8
    assert all(line.startswith("an account, a grant or an API may be too new") for line in told)


def test_an_answer_that_asks_for_no_wait_gets_none(clock: Clock) -> None:
    Caller().call("create", failing(), keep_first=always(OUT))
    assert not clock.naps


def test_each_attempt_is_checked_after_the_wait_for_its_turn(clock: Clock) -> None:
    checks: list[float] = []
    caller = Caller(Pace(1))
    for _ in range(2):
        caller.call("create", failing(), check_before=lambda: checks.append(clock.now))
    assert checks == [1000.0, 1060.0]


@pytest.mark.parametrize(("verb", "naps"), [("create", 1), ("delete", 1), ("get", 0), ("list", 0), ("cancel", 0)])
def test_creates_and_deletes_are_paced(clock: Clock, verb: CallKind, naps: int) -> None:
    caller = Caller(Pace(1))
    for _ in range(2):
        caller.call(verb, failing())
    assert len(clock.naps) == naps


def test_an_outage_is_told_once_a_minute(clock: Clock) -> None:
    told: list[str] = []
    caller = Caller(report=told.append)
    caller.call("get", failing(OUT, OUT, OUT))
    caller.call("get", failing(OUT))
    assert told == ["the API does not answer as it should (no answer); trying again for up to 120 s"]


def test_before_a_retry_the_server_may_be_started(clock: Clock) -> None:
    starts: list[float] = []
    Caller(before_retry=lambda: starts.append(clock.now)).call("list", failing(OUT))
    assert starts == [clock.now]
