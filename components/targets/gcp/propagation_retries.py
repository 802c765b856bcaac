"""Retries of resources that Google Cloud refuses only because something new is not known everywhere yet."""

import asyncio
import itertools
import re
from collections.abc import Sequence

import pulumi

MAX_TRIES = 12
MAX_PAUSE_SECONDS = 20.0
"""With pauses that double from one second, twelve tries take about two and a half minutes. Google's page on service
agents says that a new account is usually known everywhere within two."""

_TRANSIENT_REFUSALS: dict[str, re.Pattern[str]] = {
    # Names the account: a bucket or a repository that "does not exist" is a mistake, which waiting does not mend.
    "IAM does not know the account yet": re.compile(
        r"service account\b.{0,200}(does not exist|not found|is not ready)|gaia id not found", re.IGNORECASE | re.DOTALL
    ),
    # Workflows' page on troubleshooting; terraform-google-bigquery #226 on the first workflow of a project.
    "IAM does not know the agent, or the right to use the account, yet": re.compile(
        r"serviceaccounts\.actAs\b.{0,300}may not exist|service agent\b.{0,100}does not exist",
        re.IGNORECASE | re.DOTALL,
    ),
    "IAM does not know the role yet": re.compile(r"role \S+ does not exist in the resource's hierarchy", re.IGNORECASE),
    # Cloud Storage's words, then those of Artifact Registry and Vertex AI (terraform-provider-google #11913, #15572).
    "Cloud KMS does not know the grant of the key yet": re.compile(
        r"permission denied on cloud kms key|cloudkms\.cryptoKeyVersions\.useTo(En|De)crypt", re.IGNORECASE
    ),
    # Enabling an API returns before all of Google's systems know it, as the refusal itself says.
    "the API is not enabled, or only just": re.compile(r"has not been used in project \S+ before or it is disabled"),
}
"""What a refusal that passes says of itself, by the reason that people are told."""
_hook_numbers = itertools.count(1)


def create_retrying_options(
    parent: pulumi.Resource, depends_on: Sequence[pulumi.Resource] = (), *, protect: bool | None = None
) -> pulumi.ResourceOptions:
    """Return options of a resource whose creation is tried again after a refusal that passes."""
    # Pulumi needs a name for each hook that is unique in the program.
    hook = pulumi.ErrorHook(f"until-known-{next(_hook_numbers)}", _pause_and_decide_on_retry)
    hooks = pulumi.ResourceHookBinding(on_error=[hook])
    return pulumi.ResourceOptions(parent=parent, depends_on=depends_on, protect=protect, hooks=hooks)


async def _pause_and_decide_on_retry(failure: pulumi.ErrorHookArgs) -> bool:
    """Return whether to try a failed creation again, after a pause."""
    pause = compute_retry_pause_or_none(failure.errors)
    if pause is None:
        return False
    reason = find_transient_refusal_reason_or_none(failure.errors[0])
    pulumi.log.info(f"{failure.name}: {reason}; trying again in {pause:.0f} s")
    await asyncio.sleep(pause)
    return True


def find_transient_refusal_reason_or_none(error: str) -> str | None:
    """Return why a refusal passes by itself; `None` for any other error."""
    return next((reason for reason, pattern in _TRANSIENT_REFUSALS.items() if pattern.search(error)), None)


def compute_retry_pause_or_none(errors_newest_first: list[str]) -> float | None:
    """Return the seconds to wait after these errors of one resource; `None` for no retry."""
    if len(errors_newest_first) >= MAX_TRIES or find_transient_refusal_reason_or_none(errors_newest_first[0]) is None:
        return None
    return min(2.0 ** (len(errors_newest_first) - 1), MAX_PAUSE_SECONDS)
