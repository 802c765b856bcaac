"""Guardrails: limits that a stack sets for its jobs and machines. A preview fails if one is broken.

A job is checked as it will be submitted: with its vars filled in, the stack's labels, and Vertex AI's default timeout
of seven days if it has none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from math import isfinite
from typing import Any

from vertex_api.estimates.cost import Cost
from vertex_api.jobspec import DEFAULT_TIMEOUT, explicit_timeout
from vertex_api.machines import accelerator_of
from vertex_api.messages import KeyPath
from vertex_api.names import Kind, either
from vertex_api.scalars import to_seconds
from vertex_api.validation.formats import Violation

from ..errors import ImageRefused
from ..schema import interpolation
from ..schema.declared_job import DeclaredJob
from ..schema.shapes import Guardrails, Image
from . import gcp_stack_rules

_UNKNOWN_YET = "stands for a value that is not known yet, so it cannot be checked; write the value"
_LISTS = ("machineTypes", "acceleratorTypes", "registries")
_LIMITS = {"maxHourlyCost": "hourly", "maxTotalCost": "total"}
_MAX_NAMES = 3


def find_empty_rule_violations(guardrails: Any) -> Iterator[Violation]:
    """Find empty rules in a stack file's `guardrails`, as written; elsewhere an empty value means "unset"."""
    for rule in Guardrails.__annotations__:
        if isinstance(guardrails, Mapping) and rule in guardrails and guardrails[rule] in (None, []):
            value = "write [none] to allow none" if rule in _LISTS else "give it a value"
            yield (rule,), f"is empty; remove it, or {value}"


def find_job_violations(
    rules: Guardrails, job: DeclaredJob, images: Mapping[str, Image], labels: Mapping[str, str]
) -> Iterator[Violation]:
    """Find every guardrail that a valid job breaks. `labels` are those that the stack gives all its jobs.

    A pipeline is checked by the job that it runs, and by the image that serves its model.
    """
    training_job = job.required_valid_spec.backing
    for path, message in _find_training_job_violations(rules, training_job.kind, training_job.fields, images, labels):
        yield job.required_valid_spec.own_path(path), message
    serving = job.required_valid_spec.fields.get("modelToUpload", {}).get("containerSpec", {}).get("imageUri")
    yield from _find_registry_violations(rules, serving, images, ("modelToUpload", "containerSpec", "imageUri"))


def _find_training_job_violations(
    rules: Guardrails, kind: Kind, spec: Mapping[str, Any], images: Mapping[str, Image], labels: Mapping[str, str]
) -> Iterator[Violation]:
    field = kind.spec_field
    pools_path: KeyPath = (field, "workerPoolSpecs")
    for index, pool in enumerate(spec[field]["workerPoolSpecs"]):
        at = (*pools_path, index)
        yield from _find_disallowed_machine_and_accelerator_types(
            rules, pool.get("machineSpec", {}), (*at, "machineSpec")
        )
        for task, image in (("containerSpec", "imageUri"), ("pythonPackageSpec", "executorImageUri")):
            yield from _find_registry_violations(rules, pool.get(task, {}).get(image), images, (*at, task, image))
    counts = count_replicas_and_trials_by_rule(spec[field], spec)
    for rule, path, noun in (
        ("maxReplicas", pools_path, "replicas in all pools"),
        ("maxTrials", ("maxTrialCount",), "trials"),
        ("maxParallelTrials", ("parallelTrialCount",), "trials at once"),
    ):
        yield from _find_limit_violations(rule, rules, counts[rule], path, noun)
    yield from _find_timeout_violations(rules, spec[field], (field, "scheduling", "timeout"))
    for label in rules.get("requiredLabels", ()):
        if not {**labels, **spec.get("labels", {})}.get(label):
            message = f'guardrails.requiredLabels: has no label "{label}"; set it here, or for all jobs in the stack'
            yield ("labels", label), message


def count_replicas_and_trials_by_rule(job_spec: Mapping[str, Any], job_fields: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts of replicas and trials by the guardrail that limits each."""
    return {
        "maxReplicas": sum(pool.get("replicaCount", 1) for pool in job_spec["workerPoolSpecs"] if pool),
        "maxTrials": job_fields.get("maxTrialCount", 0),
        "maxParallelTrials": job_fields.get("parallelTrialCount", 0),
    }


def find_resource_pool_violations(rules: Guardrails, values: Mapping[str, Any]) -> Iterator[Violation]:
    """Find every guardrail that the stack's persistent resource breaks. Only those on machines apply to it."""
    for at, pool in gcp_stack_rules.iterate_resource_pools_with_paths(values):
        yield from _find_disallowed_machine_and_accelerator_types(rules, pool["machineSpec"], (*at, "machineSpec"))


def find_cost_limit_violations(
    rules: Guardrails, costs_by_name: Mapping[str, Cost], region: str
) -> Iterator[tuple[str | None, str, str]]:
    """Find what breaks the limits of cost, which apply to the sum of all `costs_by_name`: `(name, rule, message)`.

    The name is that of a job that alone exceeds the limit or has no price on file, or None for the sum. A persistent
    resource has no total cost, because it has no end, so `maxTotalCost` does not apply to it.
    """
    limits = {rule: limit for rule in _LIMITS if isinstance(limit := rules.get(rule), float)}
    for name, each in costs_by_name.items():
        rule = min((rule for rule in limits if isfinite(_get_cost_for_rule(each, rule))), default=None)
        # An unknown machine type is reported by machineTypes already.
        is_reported = interpolation.is_unresolved if "machineTypes" in rules else lambda _: False
        missing = ", ".join(item for item in each.unpriced if not is_reported(item))
        if rule and missing:
            message = f"no price on file for {missing} in {region}; add it under vertex-training:prices"
            yield name, rule, f"guardrails.{rule}: {message}"
    for rule, limit in limits.items():
        priced = {name: _get_cost_for_rule(each, rule) for name, each in costs_by_name.items() if not each.unpriced}
        usd = {name: each for name, each in priced.items() if isfinite(each)}
        expensive = [name for name in usd if usd[name] > limit]
        unit = "USD an hour" if rule == "maxHourlyCost" else "USD at most"
        resource = gcp_stack_rules.PERSISTENT_RESOURCE
        limit_text = f"allowed: {limit:.2f} for all jobs{f' and {resource}' if resource in usd else ''}"
        for name in expensive:
            yield name, rule, f"guardrails.{rule}: {usd[name]:.2f} {unit} by list price; {limit_text}"
        if not expensive and sum(usd.values()) > limit:
            names = sorted(usd, key=lambda name: -usd[name])[:_MAX_NAMES]
            items = ", ".join(f"{name} {usd[name]:.2f}" for name in names)
            message = f"{sum(usd.values()):.2f} {unit} by list price; {limit_text}; most expensive: {items}"
            yield None, rule, message


def build_image_uri_validator(rules: Guardrails | None, image_name: str) -> Callable[[str], str]:
    """Return a function that checks the URI of an image of another stack, once that stack's outputs are known.

    The function returns the URI, or raises ImageRefused.
    """

    def require_allowed_uri(uri: str) -> str:
        allowed = (rules or {}).get("registries")
        if allowed is not None and not _is_in_registries(uri, allowed):
            raise ImageRefused(f"images.{image_name}: {_build_registry_message(uri, allowed)}")
        return uri

    return require_allowed_uri


def _find_disallowed_machine_and_accelerator_types(
    rules: Guardrails, spec: Mapping[str, Any], at: KeyPath
) -> Iterator[Violation]:
    types = {"machineType": spec.get("machineType"), "acceleratorType": accelerator_of(spec)[0]}
    for field, value in types.items():
        allowed = rules.get(rule := f"{field}s")
        if not isinstance(allowed, list) or value is None:
            continue
        if interpolation.is_unresolved(value):
            yield (*at, field), f'guardrails.{rule}: "{value}" {_UNKNOWN_YET}'
        elif not any(fnmatchcase(value, pattern) for pattern in allowed):
            yield (
                (*at, field),
                f'guardrails.{rule}: "{value}" is not allowed here; allowed: {_format_allowed_values(allowed)}',
            )


def _find_registry_violations(
    rules: Guardrails, uri: str | None, images: Mapping[str, Image], at: KeyPath
) -> Iterator[Violation]:
    """Images that the stack builds are allowed: they are pushed to its own registry."""
    allowed = rules.get("registries")
    if allowed is None or uri is None:
        return
    name = uri.removeprefix("${images.").removesuffix("}")
    if name in images and "uri" not in images[name]:
        return
    uri = images[name]["uri"] if name in images else uri
    if interpolation.is_unresolved(uri):
        yield at, f'guardrails.registries: "{uri}" {_UNKNOWN_YET}'
    elif not _is_in_registries(uri, allowed):
        yield at, _build_registry_message(uri, allowed)


def _is_in_registries(uri: str, allowed: Iterable[str]) -> bool:
    """Whether an image is below one of the `allowed` prefixes; `host/team` is not one of `host/team-b/image`."""
    return any(uri == prefix or uri.startswith(tuple(prefix.rstrip("/") + end for end in "/:@")) for prefix in allowed)


def _build_registry_message(uri: str, allowed: Sequence[str]) -> str:
    return f'guardrails.registries: "{uri}" is not in an allowed registry; allowed: {_format_allowed_values(allowed)}'


def _get_cost_for_rule(cost: Cost, rule: str) -> float:
    return float(getattr(cost, _LIMITS[rule]))


def _find_limit_violations(
    rule: str, rules: Mapping[str, Any], count: int, at: KeyPath, noun: str
) -> Iterator[Violation]:
    if (limit := rules.get(rule)) is not None and count > limit:
        yield at, f"guardrails.{rule}: {count} {noun}; at most {limit} are allowed here"


def _find_timeout_violations(rules: Guardrails, job_spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    timeout, limit = explicit_timeout(job_spec), rules.get("maxTimeout")
    if timeout is None and rules.get("requireTimeout"):
        yield at, f'guardrails.requireTimeout: is required here, such as "{limit or "3600s"}"'
    elif limit is not None and to_seconds(timeout or DEFAULT_TIMEOUT) > to_seconds(limit):
        timeout_text = f'"{timeout}"' if timeout else f'seven days ("{DEFAULT_TIMEOUT}"), the default,'
        yield at, f'guardrails.maxTimeout: {timeout_text} is longer than the "{limit}" that is allowed here'


def _format_allowed_values(allowed: Sequence[str]) -> str:
    return either(allowed) if allowed else "none"
