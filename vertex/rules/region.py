"""Rules for the region of a job: what else it names is to be there too."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex.kinds import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB, Kind
from vertex.rules.finding import Finding, KeyPath

_SPECS: dict[Kind, KeyPath] = {
    CUSTOM_JOB: ("jobSpec",),
    HYPERPARAMETER_TUNING_JOB: ("trialJobSpec",),
}
_REGION = 3  # projects/P/locations/R/… and projects/P/regions/R/…


def broken(kind: Kind, job: Mapping[str, Any], region: str) -> Iterator[Finding]:
    """Every rule that a canonical job without other problems breaks in a region.

    Discovery document, EncryptionSpec ("the key needs to be in the same region") and, by Google's page on Private
    Service Connect interfaces, the network attachment.
    """
    key = job.get("encryptionSpec", {}).get("kmsKeyName", "")
    yield from _elsewhere("key", key, region, ("encryptionSpec", "kmsKeyName"))
    at = _SPECS[kind]
    psc: Mapping[str, Any] = job[at[0]].get("pscInterfaceConfig", {})
    attachment = psc.get("networkAttachment", "")
    yield from _elsewhere("attachment", attachment, region, (*at, "pscInterfaceConfig", "networkAttachment"))


def _elsewhere(what: str, name: str, region: str, at: KeyPath) -> Iterator[Finding]:
    parts = name.split("/")
    if len(parts) > _REGION and parts[_REGION] != region:
        yield at, f'the {what} is in "{parts[_REGION]}"; it must be in the region of the jobs, {region}'
