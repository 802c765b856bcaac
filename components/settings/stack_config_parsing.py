"""The values of a stack file, apart from its declarations: their shapes, and what the stack's target requires."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vertex_api.messages import KeyPath
from vertex_api.validation.check import ValidPart
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import canonicalize

from ..errors import Problem
from ..schema import shapes
from . import gcp_stack_rules, guardrail_checks
from .declaration_loading import SECTIONS
from .price_overrides import find_price_violations

NAMESPACE = "vertex-training"
"""Of all keys, also in projects that have another name."""


def extract_and_decode_own_config(config: Mapping[str, str]) -> dict[str, Any]:
    """Return a stack's config without the keys of other namespaces, and without the namespace.

    The engine passes texts as they are, and lists and objects as JSON.
    """
    prefix = f"{NAMESPACE}:"
    own = {key.removeprefix(prefix): text for key, text in config.items() if key.startswith(prefix)}
    return {key: _decode_if_json_object_or_list(text) for key, text in own.items()}


def find_valid_values_and_violations(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[Violation]]:
    """Return the valid values of a stack's config in the shape of `stack_config_types.Stack`, and all violations.

    The declarations are returned as they are. A region or a persistent resource that breaks a rule is left out, so that
    nothing is checked or priced by it.
    """
    declarations = {key: value for key, value in config.items() if key in SECTIONS}
    without_sections = {key: config[key] for key in config.keys() - SECTIONS}
    values, misshapen = canonicalize(shapes.Stack, without_sections)
    valid_part = ValidPart.of(shapes.Stack, values, misshapen)
    has_target = ("target",) not in valid_part.removed_paths
    problems = valid_part.problems(_find_violations_of_chosen_target) if has_target else []
    # Messages quote values, and a secret's value must not be shown.
    violations = [(each.path, "must be a string" if _is_in_secrets(each.path) else each.message) for each in misshapen]
    violations += [(each.path, each.message) for each in problems]
    violations += (
        (("guardrails", *path), message)
        for path, message in guardrail_checks.find_empty_rule_violations(config.get("guardrails"))
    )
    invalid = {each.path[0] for each in misshapen}
    invalid |= {each.path[0] for each in problems} & {gcp_stack_rules.PERSISTENT_RESOURCE, "region"}
    return {**{key: value for key, value in values.items() if key not in invalid}, **declarations}, violations


def find_credentials_problems(place: str, config: Mapping[str, str]) -> Iterator[Problem]:
    """Find credentials in a stack's whole config that its jobs and builds would not be submitted with."""
    if "gcp:externalCredentials" in config:
        message = (
            "is taken by Pulumi's Google provider alone, and not for jobs, images and packages; set "
            "GOOGLE_APPLICATION_CREDENTIALS to the credential configuration file of the identity pool instead"
        )
        yield Problem(place, "gcp:externalCredentials", message)


def _find_violations_of_chosen_target(stack_values: Mapping[str, Any]) -> Iterable[Violation]:
    if stack_values["target"] == "gcp":
        yield from gcp_stack_rules.find_stack_violations(stack_values)
        if "prices" in stack_values:
            for path, message in find_price_violations(stack_values["prices"], stack_values.get("region")):
                yield ("prices", *path), message
    else:
        message = "is for the target gcp, and the target here is local"
        yield from (((key,), message) for key in shapes.Cloud.__annotations__ if key in stack_values)


def _is_in_secrets(path: KeyPath) -> bool:
    return (path[:1] == ("secrets",) and len(path) > 1) or (path[:2] == ("emulator", "secrets") and len(path) > 2)


def _decode_if_json_object_or_list(config_text: str) -> Any:
    try:
        return json.loads(config_text) if config_text[:1] in ("{", "[") else config_text
    except ValueError:
        return config_text
