"""Which refusals of Google Cloud pass by themselves, and for how long they are waited out."""

import pytest

from components.targets.gcp.propagation_retries import (
    MAX_PAUSE_SECONDS,
    MAX_TRIES,
    compute_retry_pause_or_none,
    find_transient_refusal_reason_or_none,
)


def test_a_grant_to_an_unknown_account_is_retried() -> None:
    unknown = "Error 400: Service account service-1@x.iam.gserviceaccount.com does not exist., badRequest"
    assert [compute_retry_pause_or_none([unknown] * count) for count in (1, 2, 3)] == [1.0, 2.0, 4.0]
    assert compute_retry_pause_or_none([unknown] * (MAX_TRIES - 1)) == MAX_PAUSE_SECONDS
    assert compute_retry_pause_or_none([unknown] * MAX_TRIES) is None
    assert compute_retry_pause_or_none(["Error 403: denied", unknown]) is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("Error 400: Service account a@p.iam.gserviceaccount.com does not exist., badRequest", "the account"),
        ("Error 404: Gaia id not found for email a@p.iam.gserviceaccount.com", "the account"),
        ("Error 400: Workflows service agent does not exist. Try again in a few minutes.", "the agent"),
        (
            "Error 403: Permission 'iam.serviceaccounts.actAs' denied on service account a@p (or it may not exist).",
            "use",
        ),
        ("Error 400: Role (projects/acme/roles/r) does not exist in the resource's hierarchy.", "the role"),
        (
            "Error 403: Permission denied on Cloud KMS key. Please ensure that your Cloud Storage",
            "the grant of the key",
        ),
        ("Error 403: Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource", "the grant of the key"),
        ("Error 403: Artifact Registry API has not been used in project 1 before or it is disabled.", "the API"),
    ],
)
def test_a_refusal_that_passes_has_a_reason(error: str, reason: str) -> None:
    assert reason in str(find_transient_refusal_reason_or_none(error))


@pytest.mark.parametrize(
    "error",
    [
        "Error 404: The specified bucket does not exist., notFound, for member serviceAccount:a@p",
        'Error 404: Repository "r" not found',
        "Error 403: Permission 'cloudkms.cryptoKeys.setIamPolicy' denied on resource",
        "Error 409: Service account a already exists within project projects/p.",
    ],
)
def test_a_slip_is_not_retried(error: str) -> None:
    assert compute_retry_pause_or_none([error]) is None
