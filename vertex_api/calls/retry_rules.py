"""Which failed calls are made again, for how long, and after which pause."""

import re
from dataclasses import dataclass
from typing import Literal

from vertex_api.client_errors import (
    InvalidRequest,
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
class RetryRule:
    """Calls that fail for a `reason` are made again for up to `seconds`.

    `may_be_done` is whether the service may have done what the call asks for.
    """

    reason: str
    seconds: float
    may_be_done: bool = False


RATE_LIMIT = RetryRule("the API has had too many requests in this minute", 600.0)
"""The service has refused the request, so a repeated one is no second job. Others may use up the same minute."""
OUTAGE = RetryRule("the API does not answer as it should", 120.0, may_be_done=True)
"""Google's own `google.cloud.aiplatform` repeats its calls for as long (its `_DEFAULT_RETRY`, 429, 500, 503)."""
NEW_GRANT = RetryRule("an account, a grant or an API may be too new to be known everywhere", 150.0)
"""Google's page on service agents: changes are usually known everywhere within two minutes."""

MISSING_ACT_AS = re.compile(r"permission to act as service.account", re.IGNORECASE)
"""The caller lacks `iam.serviceAccounts.actAs` on the job's account (python-aiplatform#1073)."""
_NEW_GRANT_REFUSAL = re.compile(
    rf"{MISSING_ACT_AS.pattern}"  # for a new account or grant
    r"|has not been used in project .* or it is disabled"  # for an API that has just been enabled
    r"|service agents are being provisioned"  # for the first call in a project
    r"|does not have permission to access artifact registry",  # for a new grant of the service agent
    re.IGNORECASE,
)


def find_retry_rule_or_none(call_kind: CallKind, error: VertexError) -> RetryRule | None:
    """Return the rule by which a failed call is made again, `None` if it is not.

    A quota that does not cover the job (`QuotaExceeded`) is not retried: the job would wait in the queue if it were
    only in use (page on custom training quotas), so the request alone exceeds it. Reports on failed jobs do not wait
    for logs.
    """
    if call_kind == "read_log":
        return None
    if isinstance(error, RateLimited):
        return RATE_LIMIT
    if isinstance(error, Unavailable):
        return None if isinstance(error, OperationUnfinished) else OUTAGE
    is_refused = isinstance(error, InvalidRequest | PermissionDenied)
    return NEW_GRANT if call_kind == "create" and is_refused and _NEW_GRANT_REFUSAL.search(str(error)) else None


def compute_retry_pause_or_none(
    rule: RetryRule, tries: int, failing_seconds: float, retry_after: float | None, random_fraction: float
) -> float | None:
    """Return the seconds to wait before a call is made again, `None` if it is given up.

    The pause doubles from one second with each of the `tries` so far, and `random_fraction` (0 to 1) of its half is
    taken off, so that clients that failed together do not come back together. `retry_after` is what the service asks
    for.
    """
    backoff = min(2.0 ** (tries - 1), MAX_PAUSE_SECONDS) * (1 - random_fraction / 2)
    pause = max(backoff, retry_after or 0.0)
    return None if failing_seconds + pause > rule.seconds else pause
