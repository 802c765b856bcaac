"""A filter as a tree of comparisons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """`field operator value`; the operator `:` is "has", with `*` as a wildcard."""

    field: str
    operator: str
    value: str


@dataclass(frozen=True)
class Not:
    """Negation."""

    term: Filter


@dataclass(frozen=True)
class And:
    """All of the terms."""

    terms: tuple[Filter, ...]


@dataclass(frozen=True)
class Or:
    """Any of the terms."""

    terms: tuple[Filter, ...]


Filter = Comparison | Not | And | Or
