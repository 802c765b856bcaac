"""List filters (AIP-160, which Cloud Logging's query language shares): their parser, and which resources match."""

from vertex_emulator.filters.expression import (
    And,
    Comparison,
    Filter,
    Or,
    find_required_value,
    iterate_comparisons,
    matches,
    replace_comparisons,
)
from vertex_emulator.filters.parser import parse_filter

__all__ = [
    "And",
    "Comparison",
    "Filter",
    "Or",
    "find_required_value",
    "iterate_comparisons",
    "matches",
    "parse_filter",
    "replace_comparisons",
]
