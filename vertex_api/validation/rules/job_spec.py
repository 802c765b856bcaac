"""Rules for a CustomJobSpec."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_api.validation.rules import scheduling, worker_pools
from vertex_api.validation.rules.text_formats import (
    COMPUTE_NAME,
    NETWORK,
    NETWORK_ATTACHMENT,
    PERSISTENT_RESOURCE_ID,
    STORAGE_URI,
    TENSORBOARD,
    TextFormat,
    find_unset_field_violations,
)
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_SERVICE_ACCOUNT = TextFormat(
    re.compile(r"[0-9]+|[^@\s]+@[a-z0-9.-]+\.gserviceaccount\.com"),
    "must have the form {account}@{project}.iam.gserviceaccount.com",
)
_LOCATION = "projects/{project}/locations/{region}"
_CONTEXTS = f"{_LOCATION}/metadataStores/{{store}}/contexts"
_FORMATS = {
    "serviceAccount": _SERVICE_ACCOUNT,
    "network": NETWORK,
    "tensorboard": TENSORBOARD,
    "experiment": TextFormat.from_template(_CONTEXTS + "/{experiment}"),
    "experimentRun": TextFormat.from_template(_CONTEXTS + "/{experiment}-{run}"),
    "persistentResourceId": PERSISTENT_RESOURCE_ID,
}
_MODEL = TextFormat.from_template(_LOCATION + "/models/{model}")
_ATTACHMENT = TextFormat(
    re.compile(f"{COMPUTE_NAME.pattern.pattern}|{NETWORK_ATTACHMENT.pattern.pattern}"), NETWORK_ATTACHMENT.requirement
)


def find_job_spec_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for a CustomJobSpec in any message."""
    yield from worker_pools.find_worker_pool_violations(spec, at)
    yield from scheduling.find_scheduling_violations(spec, at)
    yield from _find_resource_name_violations(spec, at)
    if spec.get("tensorboard") and not spec.get("serviceAccount"):  # the service's own text, quoted in public
        yield (*at, "serviceAccount"), "must be specified when uploading to TensorBoard"
    yield from _find_ip_range_and_psc_interface_violations(spec, at)
    yield from _find_output_directory_violations(spec, at)


def _find_resource_name_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find names in another format (discovery document, CustomJobSpec), and a run of another experiment."""
    for field, form in _FORMATS.items():
        yield from form.find_violations_if_set(spec.get(field), (*at, field))
    experiment, run = (spec.get(field, "") for field in ("experiment", "experimentRun"))
    have_formats = _FORMATS["experiment"].matches(experiment) and _FORMATS["experimentRun"].matches(run)
    if have_formats and not run.startswith(f"{experiment}-"):
        yield (*at, "experimentRun"), f'"{run}" is no run of the experiment: it must begin with {experiment}-'
    for index, model in enumerate(spec.get("models", ())):
        yield from _MODEL.find_violations_if_set(model, (*at, "models", index))


def _find_ip_range_and_psc_interface_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, `reservedIpRanges` ("under the VPC network"), PscInterfaceConfig and DnsPeeringConfig."""
    ranges = spec.get("reservedIpRanges", ())
    if ranges and not spec.get("network"):
        yield (*at, "reservedIpRanges"), "needs network, the VPC network that the ranges are reserved in"
    for index, name in enumerate(ranges):
        if not name:
            yield (*at, "reservedIpRanges", index), "is required"
        yield from COMPUTE_NAME.find_violations_if_set(name, (*at, "reservedIpRanges", index))
    psc, psc_path = spec.get("pscInterfaceConfig", {}), (*at, "pscInterfaceConfig")
    yield from _ATTACHMENT.find_violations_if_set(psc.get("networkAttachment"), (*psc_path, "networkAttachment"))
    for index, peering in enumerate(psc.get("dnsPeeringConfigs", ())):
        path: KeyPath = (*psc_path, "dnsPeeringConfigs", index)
        yield from find_unset_field_violations(peering, ["domain", "targetProject"], path)
        yield from COMPUTE_NAME.find_required_field_violations(peering, "targetNetwork", path)
        if peering["domain"] and not peering["domain"].endswith("."):
            yield (*path, "domain"), f'"{peering["domain"]}" must end with a dot'


def _find_output_directory_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, GcsDestination."""
    if "baseOutputDirectory" in spec:
        path: KeyPath = (*at, "baseOutputDirectory")
        yield from STORAGE_URI.find_required_field_violations(spec["baseOutputDirectory"], "outputUriPrefix", path)
