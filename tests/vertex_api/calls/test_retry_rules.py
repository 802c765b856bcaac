"""The retry rules: which call is made again after which error, for how long, and after which pause."""

from typing import get_args

import pytest

from vertex_api.errors import (
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
    MAX_PAUSE_SECONDS,
    NEW_GRANT,
    OUTAGE,
    PROPAGATION_SECONDS,
    RATE_LIMIT,
    CallKind,
    Rule,
    find_propagation,
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
        (NEW_AGENT, "agent is being created", "services identity create"),
        (NEW_ROLE, "the role", "correct its name"),
        (KMS, "the grant of the key", "roles/cloudkms.cryptoKeyEncrypterDecrypter"),
        (ENCRYPT, "the grant of the key", "gcp-sa-aiplatform"),
        (DECRYPT, "the grant of the key", "roles/cloudkms.cryptoKeyEncrypterDecrypter"),
        (ATTACHMENT, "the network attachment", "compute.networkAttachments.update"),
        (UPDATE, "the network attachment", "gcp-sa-aiplatform"),
        (NEW_READER, "read images", "roles/artifactregistry.reader"),
    ],
)
@pytest.mark.parametrize("kind", [InvalidRequest, PermissionDenied, NotFound])
def test_a_new_grant_is_waited_for_at_creation(refusal: str, reason: str, remedy: str, kind: type[VertexError]) -> None:
    assert {verb for verb in VERBS if rule_for(verb, kind(refusal))} == {"create"}
    assert rule_for("create", kind(refusal)) == NEW_GRANT
    propagation = find_propagation(refusal)
    assert propagation and reason in propagation.reason and remedy in propagation.remedy


@pytest.mark.parametrize("text", [DISABLED, "Permission denied. (SERVICE_DISABLED)"])
def test_a_new_api_is_waited_for_in_all_calls(text: str) -> None:
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
