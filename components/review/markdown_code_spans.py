"""Texts of users in Markdown: as code, in which HTML, mentions, links and commands have no effect."""

import re
from collections.abc import Sequence

from vertex_api.errors import visible


def render_code_span(text: str) -> str:
    """Return a text as a code span on one line, whatever is in it."""
    shown = visible(text)
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    is_padded = not shown.strip() or shown[0] in "` " or shown[-1] in "` "
    padding = " " if is_padded else ""
    return f"{fence}{padding}{shown or '(empty)'}{padding}{fence}"


def join_code_spans_and_count_others(texts: Sequence[str], max_count: int) -> str:
    """Return texts as code spans with commas, of which those beyond `max_count` are counted only."""
    shown = ", ".join(map(render_code_span, texts[:max_count]))
    hidden_count = len(texts) - max_count
    return f"{shown} and {hidden_count:,} more" if hidden_count > 0 else shown


def format_count_with_noun(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 job` and `1,000 jobs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
