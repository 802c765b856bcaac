"""List filters, as Vertex's list methods and Cloud Logging have them: which resources pass, and what a filter asks."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator

from vertex_emulator.api.filter_parser import parse
from vertex_emulator.api.filter_tree import And, Comparison, Filter, Not, Or
from vertex_emulator.times import parse_time

__all__ = ["And", "Comparison", "Filter", "Not", "Or", "comparisons", "mapped", "matches", "parse", "required"]

Lookup = Callable[[str], str | None]


def matches(node: Filter | None, lookup: Lookup) -> bool:
    """Whether a resource passes; `lookup` maps a field path to its text, or None when the field is absent."""
    match node:
        case None:
            return True
        case And(terms):
            return all(matches(term, lookup) for term in terms)
        case Or(terms):
            return any(matches(term, lookup) for term in terms)
        case Not(term):
            return not matches(term, lookup)
        case Comparison(field, operator, value):
            return _compare(lookup(field), operator, value)


def comparisons(node: Filter | None) -> Iterator[Comparison]:
    """Every comparison of a filter."""
    match node:
        case And(terms) | Or(terms):
            for term in terms:
                yield from comparisons(term)
        case Not(term):
            yield from comparisons(term)
        case Comparison():
            yield node


def mapped(node: Filter, change: Callable[[Comparison], Comparison]) -> Filter:
    """The filter with each comparison replaced."""
    match node:
        case And(terms):
            return And(tuple(mapped(term, change) for term in terms))
        case Or(terms):
            return Or(tuple(mapped(term, change) for term in terms))
        case Not(term):
            return Not(mapped(term, change))
        case Comparison():
            return change(node)


def required(node: Filter | None, field: str, operator: str = "=") -> str | None:
    """The value that `field` must be compared with by `operator` for anything to pass, if the filter demands that."""
    match node:
        case And(terms):
            return next((value for term in terms if (value := required(term, field, operator)) is not None), None)
        case Comparison(found, by, value) if (found, by) == (field, operator):
            return value
    return None


def _compare(actual: str | None, operator: str, wanted: str) -> bool:
    if operator == "!=":
        return not _compare(actual, "=", wanted)
    if actual is None:
        return False
    if operator == ":":
        return fnmatch.fnmatchcase(actual, re.sub(r"[\[?]", lambda special: f"[{special[0]}]", wanted))
    left: str | int = actual
    right: str | int = wanted
    times = parse_time(actual), parse_time(wanted)
    if times[0] is not None and times[1] is not None:
        left, right = times[0], times[1]
    if operator == "=":
        return left == right
    if isinstance(left, int) and isinstance(right, int):
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
    return {
        "<": actual < wanted,
        "<=": actual <= wanted,
        ">": actual > wanted,
        ">=": actual >= wanted,
    }[operator]
