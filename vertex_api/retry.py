"""Calls to the API, made in turn and again after errors that pass: the rules, the pace, and the caller of both."""

import itertools
import random
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from vertex_api.errors import (
    Interrupted,
    InvalidRequest,
    NotFound,
    OperationUnfinished,
    PermissionDenied,
    RateLimited,
    Unavailable,
    VertexError,
)

CallKind = Literal["create", "get", "list", "cancel", "delete", "read_log"]
SUBMISSIONS: frozenset[CallKind] = frozenset({"create", "delete"})
"""The calls that count as submissions (page "Quotas and limits": creating and deleting jobs)."""
MAX_PAUSE_SECONDS = 20.0


@dataclass(frozen=True)
class Rule:
    """Calls that fail for a `reason` are made again for up to `seconds`.

    `may_be_done` is whether the service may have done what the call asks for.
    """

    reason: str
    seconds: float
    may_be_done: bool = False


RATE_LIMIT = Rule("the API has had too many requests in this minute", 600.0)
"""The service has refused the request, so a repeated one is no second job. Others may use up the same minute."""
OUTAGE = Rule("the API does not answer as it should", 120.0, may_be_done=True)
"""Google's own `google.cloud.aiplatform` repeats its calls for as long (its `_DEFAULT_RETRY`, 429, 500, 503)."""
LOST_ANSWER_SECONDS = 30.0
"""How long to wait before a look for what a create without an answer has made. Lists may lag, as Google promises fresh
results of `get` alone (AIP-121), and what has timed out may still be under way."""
PROPAGATION_SECONDS = 480.0
"""Google's page "Access change propagation": policy changes take typically 2 minutes, potentially 7 or longer."""
NEW_GRANT = Rule("an account, a grant or an API may be too new to be known everywhere", PROPAGATION_SECONDS)


@dataclass(frozen=True)
class Propagation:
    """Something new that Google Cloud does not know everywhere yet: why it refuses, and in which words.

    `remedy` is what to do about a refusal that outlasts the propagation.
    """

    reason: str
    refusal: re.Pattern[str]
    remedy: str


def _propagation(reason: str, refusal: str, remedy: str) -> Propagation:
    return Propagation(reason, re.compile(refusal, re.IGNORECASE | re.DOTALL), remedy)


_VERTEX_AGENT = "the Vertex AI Service Agent (service-PROJECT_NUMBER@gcp-sa-aiplatform.iam.gserviceaccount.com)"
MISSING_ACT_AS = _propagation(
    "IAM does not know the account, or the right to use it, yet",
    # Of Vertex AI (python-aiplatform#1073) and Cloud Build; IAM's general form, as of Workflows (its page on
    # troubleshooting).
    r"permission to act as service.account|iam\.serviceaccounts\.actAs\b.{0,300}may not exist",
    "add who runs `pulumi` to identity.submitters, or grant them roles/iam.serviceAccountUser on it",
)
DISABLED_API = _propagation(
    # Enabling an API returns before all of Google's systems know it, as the refusal itself says.
    "the API is not enabled, or only just",
    r"has not been used in project .{0,300}it is disabled|\bSERVICE_DISABLED\b",
    "enable the API that it names by `gcloud services enable API --project PROJECT`, in that project",
)
SECRET_ACCESS = _propagation(
    # Of Cloud Build, whose builds read secrets (googlecodelabs/feedback#1458).
    "IAM does not know the right to read the secret yet",
    r"secretmanager\.versions\.access\b",
    "grant roles/secretmanager.secretAccessor on the secret to the account that reads it",
)
PROVISIONING = _propagation(
    # The first call in a project; terraform-google-bigquery#226 on the first workflow of one.
    "the service agent is being created",
    r"service agents are being provisioned|service agent\b.{0,100}does not exist",
    # Not by `gcloud beta services identity create`: what that makes has no role.
    "run `pulumi up` again in a few minutes",
)
SUBNETWORK_ACCESS = _propagation(
    # Compute Engine's form, of the agent that is to use a subnetwork of a Shared VPC.
    "IAM does not know the right to use the subnetwork yet",
    r"required 'compute\.subnetworks\.use' permission",
    f"grant roles/compute.networkUser on the host project of the Shared VPC to {_VERTEX_AGENT}",
)
PROPAGATIONS = (
    MISSING_ACT_AS,
    DISABLED_API,
    SECRET_ACCESS,
    _propagation(
        # Names the account: a bucket or a repository that "does not exist" is a mistake, which waiting does not mend.
        "IAM does not know the account yet",
        r"service account\b.{0,200}(does not exist|not found|is not ready)|gaia id not found",
        "create the account, or correct its e-mail",
    ),
    PROVISIONING,
    _propagation(
        "IAM does not know the role yet",
        r"role \S+ does not exist in the resource's hierarchy",
        "create the role, or correct its name",
    ),
    _propagation(
        # Cloud Storage's words, then those of Artifact Registry and Vertex AI (terraform-provider-google #11913,
        # #15572).
        "Cloud KMS does not know the grant of the key yet",
        r"permission denied on cloud kms key|cloudkms\.cryptoKeyVersions\.useTo(En|De)crypt",
        "grant roles/cloudkms.cryptoKeyEncrypterDecrypter on the key to the agent of the service that encrypts; for "
        f"jobs that is {_VERTEX_AGENT}",
    ),
    _propagation(
        # The permissions are those of Google's page on Private Service Connect interfaces.
        "IAM does not know the right to use the network attachment yet",
        r"compute\.networkAttachments\.(get|update)\b",
        "grant a role with compute.networkAttachments.get, compute.networkAttachments.update and "
        f"compute.regionOperations.get to {_VERTEX_AGENT}, in the project of the attachment",
    ),
    SUBNETWORK_ACCESS,
    _propagation(
        "IAM does not know the right to read images yet",
        r"does not have permission to access artifact registry|artifactregistry\.repositories\.downloadArtifacts\b",
        f"grant roles/artifactregistry.reader on the repository to {_VERTEX_AGENT} and to the Custom Code agent, by "
        "registry.alsoRead if it is in another project",
    ),
    _propagation(
        # Cloud Storage's form, of an agent that has got its role a moment ago.
        "IAM does not know the role of Vertex AI's agent yet",
        r"gcp-sa-aiplatform\S* does not have \S+ access",
        f"grant roles/aiplatform.serviceAgent on the project to {_VERTEX_AGENT}",
    ),
)
"""What may be too new in a first `pulumi up`: for jobs, for builds, and for the resources of pulumi-gcp."""


def find_propagation(refusal: str) -> Propagation | None:
    """Return what may be too new to be known everywhere, if that is why a service refuses."""
    return next((each for each in PROPAGATIONS if each.refusal.search(refusal)), None)


def rule_for(call_kind: CallKind, error: VertexError) -> Rule | None:
    """Return the rule by which a failed call is made again, `None` if it is not.

    A quota that does not cover the job (`QuotaExceeded`) is not retried: the job would wait in the queue if it were
    only in use (page on custom training quotas), so the request alone exceeds it. Reports on failed jobs do not wait
    for logs. A new grant matters to what is created; a new API to all calls, of which a list is the first.
    """
    if call_kind == "read_log":
        return None
    if isinstance(error, RateLimited):
        return RATE_LIMIT
    if isinstance(error, Unavailable):
        return None if isinstance(error, OperationUnfinished) else OUTAGE
    is_refused = isinstance(error, InvalidRequest | PermissionDenied | NotFound)
    propagation = find_propagation(str(error)) if is_refused else None
    is_waited_for = propagation is DISABLED_API or (propagation is not None and call_kind == "create")
    return NEW_GRANT if is_waited_for else None


def pause_before(
    rule: Rule, tries: int, failing_seconds: float, retry_after: float | None, random_fraction: float
) -> float | None:
    """Return the seconds to wait before a call is made again, `None` if it is given up.

    The pause doubles from one second with each of the `tries` so far, and `random_fraction` (0 to 1) of its half is
    taken off, so that clients that failed together do not come back together. `retry_after` is what the service asks
    for.
    """
    backoff = min(2.0 ** (tries - 1), MAX_PAUSE_SECONDS) * (1 - random_fraction / 2)
    pause = max(backoff, retry_after or 0.0)
    return None if failing_seconds + pause > rule.seconds else pause


SUBMISSIONS_PER_MINUTE = 60
"""Vertex AI's limit for a project and region."""
SUBMISSION_METRIC = "aiplatform.googleapis.com/job_or_lro_submission_requests"
_BURSTS_PER_MINUTE = 12


class Pace:
    """Gives each submission its turn. One pace is shared by all threads that submit to a project and region.

    `before_wait` is called with the number of turns so far before a thread waits for its turn.
    """

    def __init__(self, per_minute: int, before_wait: Callable[[int], None] = lambda _turns: None) -> None:
        self.per_minute = per_minute
        self._burst, self._interval = _burst(per_minute)
        self._before_wait = before_wait
        self._lock = threading.Lock()
        self._next_even_turn = 0.0
        self._turns = 0

    def limit(self, per_minute: int) -> None:
        """Let no more than so many turns be taken in a minute from now on."""
        with self._lock:
            self.per_minute = min(self.per_minute, per_minute)
            self._burst, self._interval = _burst(self.per_minute)

    @property
    def has_begun(self) -> bool:
        """Whether a turn has been taken."""
        return self._turns > 0

    def wait_for_turn(self) -> None:
        """Wait until the next submission may be sent."""
        pause = self.reserve(time.monotonic())
        if pause > 0:
            self._before_wait(self._turns)
            time.sleep(pause)

    def reserve(self, now: float) -> float:
        """Reserve the next turn and return in how many seconds from `now` it is."""
        with self._lock:
            # The generic cell rate algorithm: a token bucket whose only state is a time.
            even_turn = max(self._next_even_turn, now)
            self._next_even_turn = even_turn + self._interval
            self._turns += 1
            return max(0.0, even_turn - (self._burst - 1) * self._interval - now)


def least_seconds(submissions: int, per_minute: int) -> float:
    """Return how long so many submissions take at the least."""
    burst, interval = _burst(per_minute)
    return max(0, submissions - burst) * interval


def _burst(per_minute: int) -> tuple[int, float]:
    """Return how many calls may go at once, and the seconds between later ones.

    The call after a minute's last one comes a minute after the first: burst + 60 s / interval = per_minute + 1.
    """
    burst = max(1, per_minute // _BURSTS_PER_MINUTE)
    return burst, 60 / (per_minute + 1 - burst)


Result = TypeVar("Result")
REPORT_INTERVAL_SECONDS = 60.0


@dataclass
class _Failures:
    """Failures of calls for one reason since such calls last succeeded: when they began, and the last one."""

    began: float
    last: float


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


class Caller:
    """Makes calls for one client, whose threads share a pace and know of each other's failures.

    `before_retry` is called before a call is made again, and `report` with a line for users. `wait` waits for seconds,
    and returns whether the run is to stop. `lost_answer_seconds` is how long what a create has made may stay unseen.
    """

    def __init__(
        self,
        pace: Pace | None = None,
        before_retry: Callable[[], object] = lambda: None,
        report: Callable[[str], None] = lambda _line: None,
        wait: Callable[[float], bool] = _sleep,
        lost_answer_seconds: float = LOST_ANSWER_SECONDS,
    ) -> None:
        self._pace, self._before_retry, self._report, self._wait = pace, before_retry, report, wait
        self._lost_answer_seconds = lost_answer_seconds
        self._lock = threading.Lock()
        self._failures: dict[Rule, _Failures] = {}
        self._reported: dict[Rule, float] = {}

    def call(
        self,
        call_kind: CallKind,
        attempt: Callable[[], Result],
        *,
        check_before: Callable[[], None] = lambda: None,
        find_earlier_result: Callable[[], Result | None] = lambda: None,
        keep_first: Callable[[Result], Result] = lambda result: result,
    ) -> Result:
        """Return the result of `attempt`, which is made again as the retry rules say. Raises VertexError.

        `check_before` is called right before each attempt. After a create that may have been successful although it
        failed, `find_earlier_result` returns what it has done: it is asked twice before the create is made again, and
        once before it is given up. If that was made again, `keep_first` removes what there is more than once, and
        returns the result that stays.
        """
        lost = 0
        first_failures: dict[Rule, float] = {}
        for tries in itertools.count(1):
            if self._pace and call_kind in SUBMISSIONS:
                self._pace.wait_for_turn()
            check_before()

            try:
                result = attempt()
            except VertexError as error:
                rule = rule_for(call_kind, error)
                pause = self._pause(rule, tries, first_failures, error) if rule else None
                is_lost = call_kind == "create" and rule is not None and rule.may_be_done
                lost += is_lost

                # Given up: what a lost answer has created is looked for once more.
                if pause is None:
                    with suppress(VertexError):  # the failure to report is that of the call
                        if is_lost and self._lost_answer_seconds:
                            self._wait(self._lost_answer_seconds)
                        if lost and (done := find_earlier_result()) is not None:
                            return self._settle(done, keep_first) if lost > 1 else done
                    raise

                # Tried again: after a lost answer it is looked for twice before, as it may stay unseen for a while.
                looks = [max(pause, self._lost_answer_seconds), self._lost_answer_seconds] if is_lost else [pause]
                for seconds in filter(None, looks):
                    if self._wait(seconds):
                        found = "; the next `pulumi up` finds what it may have created" if lost else ""
                        raise Interrupted(f"stopped while it was to be tried again ({error}){found}") from error
                    self._before_retry()
                    if lost and (done := find_earlier_result()) is not None:
                        return self._settle(done, keep_first) if lost > 1 else done
            else:
                self._succeeded(call_kind)
                return self._settle(result, keep_first) if lost else result
        raise AssertionError("unreachable")

    def _settle(self, result: Result, keep_first: Callable[[Result], Result]) -> Result:
        """Return what stays of a create that was made more than once. A run that is to stop looks at once."""
        if self._lost_answer_seconds:
            self._wait(self._lost_answer_seconds)
        return keep_first(result)

    def _pause(self, rule: Rule, tries: int, first_failures: dict[Rule, float], error: VertexError) -> float | None:
        """Calls that fail together give up together: 1,000 jobs do not wait one after the other for a dead API."""
        now = time.monotonic()
        first_failure = first_failures.setdefault(rule, now)
        with self._lock:
            failures = self._failures.get(rule)
            if failures is None or now - failures.last > rule.seconds:
                failures = self._failures[rule] = _Failures(now, now)
            failures.last = now
            is_shared = rule in (OUTAGE, NEW_GRANT)
            began = min(failures.began, first_failure) if is_shared else first_failure
            pause = pause_before(rule, tries, now - began, error.retry_after, random.random())
            last_report = self._reported.get(rule)
            is_news = pause is not None and (last_report is None or now - last_report >= REPORT_INTERVAL_SECONDS)
            if is_news:
                self._reported[rule] = now
        if is_news:
            self._report(f"{rule.reason} ({error}); trying again for up to {rule.seconds - (now - began):.0f} s")
        return pause

    def _succeeded(self, call_kind: CallKind) -> None:
        if self._failures:
            with self._lock:
                self._failures.pop(OUTAGE, None)
                if call_kind == "create":
                    self._failures.pop(NEW_GRANT, None)
