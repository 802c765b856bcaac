"""A filter as a tree of comparisons, and the evaluation of it."""

import fnmatch
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vertex_emulator.filters.regular_expression import matches_anywhere
from vertex_emulator.times import parse_time

REGULAR_EXPRESSION_OPERATORS = ("=~", "!~")


@dataclass(frozen=True)
class Comparison:
    """`field operator value`; `:` is "has", with `*` as a wildcard, `=~` and `!~` have a regular expression."""

    field: str
    operator: str
    value: str


@dataclass(frozen=True)
class Not:
    """The negation of a term."""

    term: "Filter"


@dataclass(frozen=True)
class And:
    """Terms that must all match."""

    terms: "tuple[Filter, ...]"


@dataclass(frozen=True)
class Or:
    """Terms of which at least one must match."""

    terms: "tuple[Filter, ...]"


Filter = Comparison | Not | And | Or


def matches(condition: Filter | None, get_field: Callable[[str], str | None]) -> bool:
    """Return whether a resource matches; `get_field` returns the text of a field path, or None if it is absent."""
    match condition:
        case None:
            return True
        case And(terms):
            return all(matches(term, get_field) for term in terms)
        case Or(terms):
            return any(matches(term, get_field) for term in terms)
        case Not(term):
            return not matches(term, get_field)
        case Comparison(field, operator, value):
            return _is_comparison_true(get_field(field), operator, value)


def iterate_comparisons(condition: Filter | None) -> Iterator[Comparison]:
    """Yield every comparison of a filter, from left to right."""
    match condition:
        case And(terms) | Or(terms):
            for term in terms:
                yield from iterate_comparisons(term)
        case Not(term):
            yield from iterate_comparisons(term)
        case Comparison():
            yield condition


def replace_comparisons(condition: Filter, replace: Callable[[Comparison], Comparison]) -> Filter:
    """Return the filter with each comparison replaced by what `replace` returns for it."""
    match condition:
        case And(terms) | Or(terms):
            return type(condition)(tuple(replace_comparisons(term, replace) for term in terms))
        case Not(term):
            return Not(replace_comparisons(term, replace))
        case Comparison():
            return replace(condition)


def find_required_value(condition: Filter | None, field: str) -> str | None:
    """Return the value that `field` must equal for anything to match, or None if the filter does not demand one."""
    match condition:
        case And(terms):
            return next((value for term in terms if (value := find_required_value(term, field)) is not None), None)
        case Comparison(compared_field, "=", value) if compared_field == field:
            return value
    return None


def _is_comparison_true(actual: str | None, operator: str, expected: str) -> bool:
    if operator in ("!=", "!~"):
        return not _is_comparison_true(actual, "=" if operator == "!=" else "=~", expected)
    if actual is None:
        return False
    if operator == ":":
        return fnmatch.fnmatchcase(actual, re.sub(r"[\[?]", lambda special: f"[{special[0]}]", expected))
    if operator == "=~":
        return matches_anywhere(expected, actual)
    times = parse_time(actual), parse_time(expected)
    if times[0] is not None and times[1] is not None:
        order = (times[0] > times[1]) - (times[0] < times[1])
    else:
        order = (actual > expected) - (actual < expected)
    return {"=": order == 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator]
