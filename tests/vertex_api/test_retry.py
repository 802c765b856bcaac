"""Which calls are made again, after which pause, and at which pace."""

import itertools
from collections.abc import Callable
from typing import get_args

import pytest

from tests.vertex_api.clock import Clock
from vertex_api import retry
from vertex_api.errors import (
    Interrupted,
    InvalidRequest,
    NotFound,
    OperationUnfinished,
    PermissionDenied,
    QuotaExceeded,
    RateLimited,
    Unavailable,
    VertexError,
)
from vertex_api.retry import (
    LOST_ANSWER_SECONDS,
    MAX_PAUSE_SECONDS,
    NEW_GRANT,
    OUTAGE,
    PROPAGATION_SECONDS,
    RATE_LIMIT,
    Caller,
    CallKind,
    Pace,
    Rule,
    find_propagation,
    least_seconds,
    pause_before,
    rule_for,
)

VERBS = get_args(CallKind)
ACT_AS = (
    "You do not have permission to act as service_account: trainer@acme.iam.gserviceaccount.com. (or it may not exist)"
)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "read_log"])
@pytest.mark.parametrize(("error", "rule"), [(RateLimited("x"), RATE_LIMIT), (Unavailable("x"), OUTAGE)], ids=str)
def test_a_limit_and_an_outage_are_retried(verb: CallKind, error: VertexError, rule: Rule) -> None:
    assert rule_for(verb, error) == rule


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
    assert rule_for(verb, error) is None


@pytest.mark.parametrize("error", [Unavailable("x"), RateLimited("x")], ids=lambda error: type(error).__name__)
def test_logs_are_read_once(error: VertexError) -> None:
    assert rule_for("read_log", error) is None


IAM_ACT_AS = "Permission 'iam.serviceaccounts.actAs' denied on service account t@p.iam (or it may not exist)."
NEW_ACCOUNT = "Error 400: Service account a@p.iam.gserviceaccount.com does not exist., badRequest"
GAIA = "Error 404: Gaia id not found for email a@p.iam.gserviceaccount.com"
PROVISIONED = "Service agents are being provisioned (https://…). Please retry in a few minutes."
NEW_AGENT = "Error 400: Workflows service agent does not exist. Try again in a few minutes."
NEW_ROLE = "Error 400: Role (projects/acme/roles/r) does not exist in the resource's hierarchy."
KMS = "Error 403: Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service account …"
ENCRYPT = (
    "Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource 'projects/p/…' (or it may not exist)."
)
DECRYPT = "Error 403: Permission 'cloudkms.cryptoKeyVersions.useToDecrypt' denied on resource"
ATTACHMENT = "Required 'compute.networkAttachments.get' permission for 'projects/p/regions/r/networkAttachments/a'"
UPDATE = "Required 'compute.networkAttachments.update' permission for 'projects/p/regions/r/networkAttachments/a'"
NEW_READER = "The service agent does not have permission to access Artifact Registry repository x."
ELSEWHERE = "Permission 'artifactregistry.repositories.downloadArtifacts' denied on resource (or it may not exist)"
SUBNETWORK = "Required 'compute.subnetworks.use' permission for 'projects/host/regions/r/subnetworks/s'"
NEW_AGENT_ROLE = (
    "service-1@gcp-sa-aiplatform.iam.gserviceaccount.com does not have storage.buckets.get access to the bucket."
)
NEW_SECRET = "Permission 'secretmanager.versions.access' denied for resource 'projects/1/secrets/T/versions/latest'"
DISABLED = "Vertex AI API has not been used in project 123 before or it is disabled. Enable it by visiting …"


@pytest.mark.parametrize(
    ("refusal", "reason", "remedy"),
    [
        (ACT_AS, "the right to use it", "roles/iam.serviceAccountUser"),
        (IAM_ACT_AS, "the right to use it", "identity.submitters"),
        (NEW_ACCOUNT, "the account yet", "correct its e-mail"),
        (GAIA, "the account yet", "create the account"),
        (NEW_SECRET, "the right to read the secret", "roles/secretmanager.secretAccessor"),
        (PROVISIONED, "agent is being created", "run `pulumi up` again"),
        (NEW_AGENT, "agent is being created", "run `pulumi up` again"),
        (NEW_ROLE, "the role", "correct its name"),
        (KMS, "the grant of the key", "roles/cloudkms.cryptoKeyEncrypterDecrypter"),
        (ENCRYPT, "the grant of the key", "gcp-sa-aiplatform"),
        (DECRYPT, "the grant of the key", "roles/cloudkms.cryptoKeyEncrypterDecrypter"),
        (ATTACHMENT, "the network attachment", "compute.networkAttachments.update"),
        (UPDATE, "the network attachment", "gcp-sa-aiplatform"),
        (NEW_READER, "read images", "roles/artifactregistry.reader"),
        (ELSEWHERE, "read images", "registry.alsoRead"),
        (SUBNETWORK, "the subnetwork", "roles/compute.networkUser"),
        (NEW_AGENT_ROLE, "the role of Vertex AI's agent", "roles/aiplatform.serviceAgent"),
    ],
)
@pytest.mark.parametrize("kind", [InvalidRequest, PermissionDenied, NotFound])
def test_a_new_grant_is_waited_for_at_creation(refusal: str, reason: str, remedy: str, kind: type[VertexError]) -> None:
    assert {verb for verb in VERBS if rule_for(verb, kind(refusal))} == {"create"}
    assert rule_for("create", kind(refusal)) == NEW_GRANT
    propagation = find_propagation(refusal)
    assert propagation and reason in propagation.reason and remedy in propagation.remedy


@pytest.mark.parametrize("text", [DISABLED, "Permission denied. (SERVICE_DISABLED)"])
def test_all_calls_wait_for_new_apis(text: str) -> None:
    waited = {verb for verb in VERBS if rule_for(verb, PermissionDenied(text)) == NEW_GRANT}
    assert waited == {*VERBS} - {"read_log"}


@pytest.mark.parametrize(
    "refusal",
    [
        "Error 404: The specified bucket does not exist., notFound, for member serviceAccount:a@p",
        'Error 404: Repository "r" not found',
        "Error 403: Permission 'cloudkms.cryptoKeys.setIamPolicy' denied on resource",
        "Error 409: Service account a already exists within project projects/p.",
        "404: The image x:1 does not exist.",
        "Permission 'aiplatform.customJobs.list' denied on resource (or it may not exist).",
    ],
)
def test_a_mistake_is_no_new_grant(refusal: str) -> None:
    assert find_propagation(refusal) is None


def test_new_grants_are_waited_for_as_google_says() -> None:
    assert NEW_GRANT.seconds == PROPAGATION_SECONDS > 7 * 60


def test_only_an_outage_may_hide_a_created_job() -> None:
    assert [rule.may_be_done for rule in (RATE_LIMIT, OUTAGE, NEW_GRANT)] == [False, True, False]


def test_pauses_double_up_to_a_maximum() -> None:
    pauses = [pause_before(RATE_LIMIT, tries, 0.0, None, 0.0) for tries in range(1, 8)]
    assert pauses == [1, 2, 4, 8, 16, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS]


def test_half_of_a_pause_is_random() -> None:
    assert pause_before(RATE_LIMIT, 3, 0.0, None, 1.0) == 2.0
    assert pause_before(RATE_LIMIT, 3, 0.0, None, 0.5) == 3.0


def test_a_requested_pause_is_heeded_within_the_deadline() -> None:
    assert pause_before(OUTAGE, 1, 0.0, 30.0, 0.0) == 30.0
    assert pause_before(OUTAGE, 6, 0.0, 0.5, 0.0) == MAX_PAUSE_SECONDS
    assert pause_before(OUTAGE, 1, 0.0, 3600.0, 0.0) is None


@pytest.mark.parametrize("rule", [RATE_LIMIT, OUTAGE, NEW_GRANT])
def test_retries_end_at_the_deadline(rule: Rule) -> None:
    assert pause_before(rule, 9, rule.seconds - MAX_PAUSE_SECONDS, None, 0.0) == MAX_PAUSE_SECONDS
    assert pause_before(rule, 9, rule.seconds - MAX_PAUSE_SECONDS + 1, None, 0.0) is None


LIMITS = [1, 2, 7, 60, 600]


def turn_times(per_minute: int, count: int) -> list[float]:
    """The times at which calls go that all come at once."""
    pace = Pace(per_minute)
    return [pace.reserve(1000.0) for _ in range(count)]


@pytest.mark.parametrize("per_minute", LIMITS)
def test_no_minute_holds_more_than_the_limit(per_minute: int) -> None:
    times = turn_times(per_minute, 5 * per_minute + 1)
    after_a_minute = zip(times, times[per_minute:], strict=False)
    assert all(later - earlier >= 60 - 1e-6 for earlier, later in after_a_minute)


@pytest.mark.parametrize("per_minute", LIMITS)
def test_many_submissions_take_less_than_a_tenth_more(per_minute: int) -> None:
    assert turn_times(per_minute, 10 * per_minute)[-1] <= 1.1 * 60 * 10


def test_a_few_submissions_do_not_wait() -> None:
    assert turn_times(60, 5) == [0] * 5


def test_the_limit_of_a_minute_fits_into_it() -> None:
    assert turn_times(60, 60)[-1] < 60


def test_an_idle_minute_is_not_saved_up() -> None:
    pace = Pace(60)
    assert [pace.reserve(now) for now in [0.0] * 5 + [1000.0] * 5] == [0] * 10
    assert pace.reserve(1000.0) > 0


def test_the_estimate_is_the_last_turn() -> None:
    for count in (1, 5, 6, 240, 1000):
        assert least_seconds(count, 60) == pytest.approx(turn_times(60, count)[-1])


def test_a_wait_is_told_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told = Clock(), list[int]()
    monkeypatch.setattr(retry, "time", clock)
    pace = Pace(1, lambda turns: told.append(turns) if not clock.naps else None)
    pace.wait_for_turn()
    assert not told
    pace.wait_for_turn()
    assert told == [2]
    assert clock.naps == [60.0]


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


def test_a_lost_submission_is_looked_for(clock: Clock) -> None:
    sent: list[float] = []

    def attempt() -> str:
        sent.append(clock.now)
        raise OUT

    assert Caller().call("create", attempt, find_earlier_result=lambda: "found") == "found"
    assert len(sent) == 1


def test_a_refused_submission_is_not_looked_for(clock: Clock) -> None:
    looks: list[str] = []
    Caller().call("create", failing(LIMITED, TOO_NEW), find_earlier_result=lambda: looks.append("look"))
    assert not looks


def test_a_lost_answer_is_looked_for_twice(clock: Clock) -> None:
    looks: list[float] = []
    began = clock.now
    Caller().call("create", failing(OUT, LIMITED, LIMITED), find_earlier_result=lambda: looks.append(clock.now - began))
    assert looks[:2] == [30, 60]
    assert len(looks) == 4, "and once before each later attempt"


def test_giving_up_looks_once_more(clock: Clock) -> None:
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


def test_a_late_refusal_is_looked_behind(clock: Clock) -> None:
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


def test_servers_without_lag_are_not_awaited(clock: Clock) -> None:
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


def test_no_wait_is_asked_for_and_made(clock: Clock) -> None:
    Caller().call("create", failing(), keep_first=always(OUT))
    assert not clock.naps


def test_attempts_are_checked_after_their_wait(clock: Clock) -> None:
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
