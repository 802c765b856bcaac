"""Which failed calls are made again, for how long, and after which pause."""

import re
from dataclasses import dataclass
from typing import Literal

from vertex_api.client_errors import (
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
LOST_ANSWER_SECONDS = 30.0
"""How long to wait before a look for what a create without an answer has made. Lists may lag, as Google promises fresh
results of `get` alone (AIP-121), and what has timed out may still be under way."""
PROPAGATION_SECONDS = 480.0
"""Google's page "Access change propagation": policy changes take typically 2 minutes, potentially 7 or longer."""
NEW_GRANT = RetryRule("an account, a grant or an API may be too new to be known everywhere", PROPAGATION_SECONDS)


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
    _propagation(
        # The first call in a project; terraform-google-bigquery#226 on the first workflow of one.
        "the service agent is being created",
        r"service agents are being provisioned|service agent\b.{0,100}does not exist",
        "run `pulumi up` again in a few minutes, or make the agent by "
        "`gcloud beta services identity create --service API --project PROJECT`",
    ),
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
    _propagation(
        "IAM does not know the right to read images yet",
        r"does not have permission to access artifact registry",
        f"grant roles/artifactregistry.reader on the repository to {_VERTEX_AGENT} and to the Custom Code agent",
    ),
)
"""What may be too new in a first `pulumi up`: for jobs, for builds, and for the resources of pulumi-gcp."""


def find_propagation(refusal: str) -> Propagation | None:
    """Return what may be too new to be known everywhere, if that is why a service refuses."""
    return next((each for each in PROPAGATIONS if each.refusal.search(refusal)), None)


def find_retry_rule_or_none(call_kind: CallKind, error: VertexError) -> RetryRule | None:
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
