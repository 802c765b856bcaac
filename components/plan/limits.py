"""Limits: all guardrails that hold for a stack, whichever file sets them. The stricter rule wins.

They come from four places, in this order: the files that the variable `VERTEX_TRAINING_GUARDRAILS` names, the shared
files that the stack file extends, the stack file, and the arguments of a `TrainingStack`. The program reads all. The
provider reads the first three again (`jobs/enforcement.py`), and takes the arguments from the stack's ledger.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from vertex_api.job import Job
from vertex_api.messages import KeyPath
from vertex_api.names import join_names
from vertex_api.scalars import to_seconds
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import canonicalize

from ..errors import ImageRefused, Problem
from ..schema import shapes
from . import guardrails
from .guardrails import Rules
from .training import Place, place

KEY = "guardrails"
SUMS = frozenset({*(each.rule for each in guardrails.FIGURES), guardrails.MONTHLY, guardrails.EXPECTED})
"""The rules on all jobs together."""
_NONE = "none"
"""A pattern that allows nothing, as docs/configuration.md has it."""
_QUOTA_CHECKS = ("block", "warn", "off")


@dataclass(frozen=True)
class Source:
    """The guardrails that one place sets.

    `name` is how messages of jobs name it, "" for the stack file. `is_own` says that its sums count the jobs of one
    `TrainingStack`, instead of all that a Pulumi stack has.
    """

    rules: Rules
    name: str = ""
    place: Place = field(default=place(""), compare=False)
    is_own: bool = False

    def said(self, message: str) -> str:
        """Return a message of `guardrails`, which begins with its rule, with the name of this source."""
        rule, _, rest = message.partition(": ")
        return f"{rule} ({self.name}): {rest}" if self.name else message


@dataclass(frozen=True)
class Limits:
    """The guardrails of several sources, together. Of a rule that is one value, the strictest source alone has it."""

    sources: tuple[Source, ...] = ()

    @classmethod
    def of(cls, sources: Iterable[Source]) -> "Limits":
        """Return what holds if all of these do."""
        whole = [each for each in sources if each.rules]
        kept: list[dict[str, Any]] = [{} for _ in whole]
        for rule in shapes.Guardrails.__annotations__:
            # A sum over less is another limit, also if it is higher.
            holders = [(each.is_own and rule in SUMS, index) for index, each in enumerate(whole) if rule in each.rules]
            for scope in (False, True):
                indexes = [index for is_own, index in holders if is_own == scope]
                for index, value in _strictest(rule, {index: whole[index].rules[rule] for index in indexes}):
                    kept[index][rule] = value
        return cls(tuple(replace(each, rules=rules) for each, rules in zip(whole, kept, strict=True) if rules))

    def __bool__(self) -> bool:
        return bool(self.sources)

    @cached_property
    def rules(self) -> Rules:
        """All rules as one mapping. Where several lists hold, it has the patterns that all others cover."""
        merged: dict[str, Any] = {}
        for source in self.sources:
            for rule, value in source.rules.items():
                earlier = merged.get(rule)
                if rule in guardrails.PATTERNS and earlier is not None:
                    inner = [each for each in value if guardrails.is_allowed(rule, each, earlier)]
                    merged[rule] = list(
                        dict.fromkeys([*inner, *(each for each in earlier if guardrails.is_allowed(rule, each, value))])
                    )
                elif rule == "requiredLabels":
                    merged[rule] = [*(earlier or ()), *value]
                elif earlier is None or rank(rule, value) < rank(rule, earlier):
                    merged[rule] = value
        return merged

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits that differ whenever other rules hold, wherever they come from; "" without any."""
        rules = sorted(json.dumps([each.rules, each.is_own], sort_keys=True) for each in self.sources)
        return hashlib.sha256(json.dumps(rules).encode()).hexdigest()[:16] if rules else ""

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The sources as inputs of a ledger have them."""
        return [
            {"source": each.name, "rules": dict(each.rules), **({"own": True} if each.is_own else {})}
            for each in self.sources
        ]

    @classmethod
    def parse(cls, fields: Iterable[Mapping[str, Any]]) -> "Limits":
        """Return the limits that the inputs of a ledger have. The engine hands whole numbers over as floats."""
        parsed = []
        for each in fields:
            rules, _ = canonicalize(shapes.Guardrails, each["rules"])
            parsed.append(Source(rules, str(each["source"]), is_own=bool(each.get("own"))))
        return cls(tuple(parsed))

    def violations(
        self,
        job: Job,
        images: Mapping[str, shapes.Image],
        labels: Mapping[str, str],
        built: Collection[str] = (),
    ) -> Iterator[Violation]:
        """Find every guardrail that a valid job breaks, one for each path, as `guardrails.violations` does."""
        yield from self._each(lambda rules: guardrails.violations(rules, job, images, labels, built))

    def machine_violations(self, machine: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
        """Find the guardrails that a MachineSpec breaks, one for each path."""
        yield from self._each(lambda rules: guardrails.machine_violations(rules, machine, at))

    def image_check(self, image: str) -> Callable[[str], str]:
        """Return a function that checks the URI of an image of another stack, once that stack's outputs are known.

        The function returns the URI, or raises ImageRefused.
        """

        def check(uri: str) -> str:
            for source in self.sources:
                for message in guardrails.image_violations(source.rules, uri):
                    raise ImageRefused(f"images.{image}: {source.said(message)}")
            return uri

        return check

    def _each(self, find: Callable[[Rules], Iterable[Violation]]) -> Iterator[Violation]:
        found: dict[KeyPath, str] = {}
        for source in self.sources:
            for path, message in find(source.rules):
                found.setdefault(path, source.said(message))
        yield from found.items()


@dataclass(frozen=True)
class Argument:
    """The guardrails that a `TrainingStack` is given: its `title` for messages, and the value as it is written."""

    title: str
    given: Any

    @property
    def source(self) -> Source:
        """The valid rules."""
        rules, misshapen = canonicalize(shapes.Guardrails, self.given)
        return Source({} if misshapen else rules, self.title, place(self.title), is_own=True)

    def problems(self, held: Limits) -> Iterator[Problem]:
        """Find what is wrong with them. They add to those that are `held` already, and loosen none."""
        rules, misshapen = canonicalize(shapes.Guardrails, self.given)
        found = [*((each.path, each.message) for each in misshapen), *guardrails.empty(self.given)]
        at = place(self.title)
        yield from (at((KEY, *path), message) for path, message in found or _loosened(rules, held))


def _loosened(rules: Rules, held: Limits) -> Iterator[Violation]:
    """Find the rules that are looser than those that hold already."""
    only = "an argument can only tighten them"
    for rule, value in rules.items():
        for source in held.sources:
            if (other := source.rules.get(rule)) is None:
                continue
            where = source.place((KEY, rule), "").place or source.name
            whose = f"the guardrails of {where}" if where else "the guardrails of the stack"
            if rule in guardrails.PATTERNS:
                allowed = (each for each in value if each != _NONE and not guardrails.is_allowed(rule, each, other))
                if wider := join_names([*allowed]):
                    yield (rule,), f"{wider} is beyond {whose} ({', '.join(other)}); {only}"
            elif rule != "requiredLabels" and rank(rule, value) > rank(rule, other):
                yield (rule,), f"{json.dumps(value)} is looser than the {json.dumps(other)} of {whose}; {only}"


def _strictest(rule: str, values: Mapping[int, Any]) -> Iterator[tuple[int, Any]]:
    """Yield what is left of the values of one rule, by index: of lists what none before has, else the strictest."""
    if rule in guardrails.PATTERNS:
        lists: list[Any] = []
        for index, value in values.items():
            if value not in lists:
                yield index, value
            lists.append(value)
    elif rule == "requiredLabels":
        seen: set[str] = set()
        for index, value in values.items():
            if labels := [each for each in value if each not in seen]:
                yield index, labels
            seen |= {*labels}
    elif values:
        yield min(values.items(), key=lambda each: rank(rule, each[1]))


def rank(rule: str, value: Any) -> float:
    """Return a number that is lower for a stricter value."""
    if rule == "quotaCheck":
        return _QUOTA_CHECKS.index(value)
    if rule == "requireTimeout":
        return not value
    return to_seconds(value) if rule == "maxTimeout" else float(value)
