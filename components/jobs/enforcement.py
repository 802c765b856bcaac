"""Enforcement: guardrails are checked again where jobs are submitted, on what is submitted.

A program has judged all jobs before, and can be wrong about them: a transform changes what it has registered, and code
of its own may make a foundation, or a job, past the rules. The provider is another process. It has the stack's config
and its environment from Pulumi's engine, so it reads the same limits once more, but for the arguments of a
`TrainingStack`, which are in the stack's ledger.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from typing import Any

from vertex_api.estimates.cost import Cost, estimate_cost
from vertex_api.estimates.prices import VARIABLE as PRICES_VARIABLE
from vertex_api.estimates.prices import Prices, PricesUnusable, prices_with
from vertex_api.job import Job
from vertex_api.messages import show_path
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import canonicalize

from ..errors import Problem, SubmitFailed
from ..plan import guardrails
from ..plan.limits import KEY, SUMS, Limits, Source
from ..plan.shared import EXTENDS, VARIABLE, Shared, from_outside
from ..runtime.resource import Provider
from ..runtime.target import CLOUD_PREFIX
from ..schema import shapes
from ..schema.source import SourceFile
from . import covering


def violations(job: Job, parent: str, name: str) -> Iterator[Violation]:
    """Find every guardrail that a job breaks as it will be submitted, with the other jobs of this run so far.

    `parent` is its location and `name` that of its resource.
    """
    limits, settings = held(parent, name), covering.settings_of(parent, name)
    if not limits:
        return
    yield from limits.violations(job, {}, {}, covering.registries(parent))
    if parent.startswith(CLOUD_PREFIX) and any(SUMS & each.rules.keys() for each in limits.sources):
        yield from _sums().violations(limits, job, parent, name, str(settings.get("prefix", "")))


def require(job: Job, parent: str, name: str, error_prefix: str) -> None:
    """Raise SubmitFailed if a job breaks a guardrail."""
    for path, message in violations(job, parent, name):
        raise SubmitFailed(f"{error_prefix}: {show_path(path)}: {message}" if path else f"{error_prefix}: {message}")


def held(parent: str, name: str) -> Limits:
    """Return the guardrails that hold for a job. Raises SubmitFailed if they cannot be read."""
    given = covering.settings_of(parent, name).get(KEY)
    extends = Provider.setting(EXTENDS)
    files = Provider.setting(KEY) or "", extends, os.environ.get(VARIABLE), str(Path.cwd()) if extends else ""
    return _limits(json.dumps(given) if given else "[]", bool(covering.registries(parent)), *files)


def prices(parent: str, name: str) -> Prices:
    """Return the prices on file, with the stack's own in their place. The program has found those valid."""
    given = covering.settings_of(parent, name).get("prices")
    if given is None and (text := Provider.setting("prices")):
        given = json.loads(text)
    own = None if given is None else canonicalize(shapes.Prices, given)[0]
    try:
        return prices_with(own)
    except PricesUnusable as error:
        raise SubmitFailed(f"{PRICES_VARIABLE}: {error}") from error


@lru_cache(maxsize=64)
def _limits(
    given: str, knows_registries: bool, own: str, extends: str | None, outside: str | None, root: str
) -> Limits:
    """Return the guardrails that a ledger is `given`, and those of all files.

    They are the files of the variable, those that the stack extends, and its own.
    """
    around, problems = from_outside({VARIABLE: outside} if outside is not None else {})
    shared = Shared.load(Path(root), extends, SourceFile("the stack file"))
    rules: Mapping[str, Any] = {}
    problems += shared.problems
    if own:
        rules, misshapen = canonicalize(shapes.Guardrails, json.loads(own))
        problems += (Problem("the stack file", show_path((KEY, *each.path)), each.message) for each in misshapen)
    if problems:
        raise SubmitFailed(f"guardrails cannot be read: {problems[0]}")
    sources = [*around, *shared.sources, Source(rules), *Limits.parse(json.loads(given)).sources]
    if not knows_registries:
        # What the stack builds cannot be told from other images: `pulumi up --target` has left its ledger out.
        kept = ({rule: value for rule, value in each.rules.items() if rule != "registries"} for each in sources)
        sources = [replace(each, rules=rules) for each, rules in zip(sources, kept, strict=True)]
    return Limits.of(sources)


class _Sums:
    """What the jobs cost that this run has checked so far, by the prefix of their stack and their name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._costs: dict[tuple[str, str], Cost] = {}
        self._totals = {each.rule: 0.0 for each in guardrails.FIGURES}

    def violations(self, limits: Limits, job: Job, parent: str, name: str, prefix: str) -> Iterator[Violation]:
        """Count a job, and find the limits of cost that it breaks, alone or together with those before."""
        region = parent.rpartition("/")[2]
        cost = estimate_cost(job, region, prices(parent, name))
        with self._lock:
            before = self._costs.get((prefix, name))
            self._costs[prefix, name] = cost
            for each in guardrails.FIGURES:
                self._totals[each.rule] += each.sum([cost]) - each.sum([before] if before else [])
            # As long as the whole is within the limits, so is each part: no other job has to be looked at.
            pairs = [
                (total, each.rules.get(rule, inf)) for rule, total in self._totals.items() for each in limits.sources
            ]
            is_within = all(total <= limit for total, limit in pairs)
            everything = {(prefix, name): cost} if is_within else dict(self._costs)
        for source in limits.sources:
            costs = {each: found for (own, each), found in everything.items() if own == prefix or not source.is_own}
            for broken, rule, message in guardrails.sum_violations(source.rules, costs, region, ""):
                if broken == name:
                    yield (), source.said(message)
                elif broken is None:
                    yield (), source.said(f"guardrails.{rule}: {message}")


@cache
def _sums() -> _Sums:
    """Return the sums of this process, which Pulumi starts and ends with each run."""
    return _Sums()
