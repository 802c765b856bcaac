"""The pieces that comments are made of: code spans, lists that end with a count, and folded ones."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from vertex_api.errors import visible

from .changes import Cause, shorten

T = TypeVar("T")
MAX_MESSAGE_LENGTH = 500
MAX_CAUSES = 3
MAX_ANSWERS = 3


@dataclass(frozen=True)
class ListLimits:
    """How many items a list has at most: of each section, of names in an item, and of each folded list."""

    items: int
    names: int
    details: int


def section(title: str, items: Sequence[T], max_count: int, render_item: Callable[[T], str]) -> Iterator[str]:
    """Yield the lines of a list below a title; none without items."""
    if not items:
        return
    yield ""
    if title:
        yield f"**{title}**"
        yield ""
    yield from (f"- {render_item(item)}" for item in items[:max_count])
    if len(items) > max_count:
        yield f"- and {len(items) - max_count:,} more"


def folded(
    noun: str, items: Sequence[T], max_count: int, render_item: Callable[[T], str], addition: str = ""
) -> Iterator[str]:
    """Yield the lines of a list that shows its count until somebody unfolds it."""
    if not items:
        return
    yield ""
    yield f"<details><summary>{count_of(len(items), noun)}{addition}</summary>"
    yield from section("", items, max_count, render_item)
    yield ""
    yield "</details>"


def quoted(message: str) -> str:
    """Return a message as a code span, shortened."""
    return code(shorten(message, MAX_MESSAGE_LENGTH))


def because(cause: Cause) -> str:
    """Return what comes after `because of`."""
    if cause.kind == "request":
        return "a request, as by `--replace`, or the provider's"
    if cause.kind == "data":
        return f"data {code(cause.name)}: {code(cause.new_text or '')}"
    if cause.kind == "name":
        name = code(cause.name)
        return f"a new name (it runs what {name} has run; add {code(f'formerly: {cause.name}')} to go on with that run)"
    if cause.kind == "next run":
        return f"{code(cause.name)} {arrow(cause.old_text, cause.new_text)} from the next run on"
    noun = {"job": "upstream job ", "field": ""}.get(cause.kind, f"{cause.kind} ")
    has_values = cause.old_text is not None or cause.new_text is not None
    values = f" {arrow(cause.old_text, cause.new_text)}" if has_values else ""
    return f"{noun}{code(cause.name)}{values}"


def arrow(old_text: str | None, new_text: str | None) -> str:
    """Return an old and a new value, None for no value."""
    old, new = (code(text) if text is not None else "(none)" for text in (old_text, new_text))
    return f"{old} → {new}"


def code(text: str) -> str:
    """Return a text as a code span on one line, whatever is in it."""
    shown = visible(text)
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    is_padded = not shown.strip() or shown[0] in "` " or shown[-1] in "` "
    padding = " " if is_padded else ""
    return f"{fence}{padding}{shown or '(empty)'}{padding}{fence}"


def codes(texts: Sequence[str], max_count: int) -> str:
    """Return texts as code spans with commas, of which those beyond `max_count` are counted only."""
    shown = ", ".join(map(code, texts[:max_count]))
    hidden_count = len(texts) - max_count
    return f"{shown} and {hidden_count:,} more" if hidden_count > 0 else shown


def count_of(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 job` and `1,000 jobs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def some(texts: Sequence[str]) -> str:
    """Return the first `MAX_ANSWERS` texts, and how many more there are."""
    more = f" and {len(texts) - MAX_ANSWERS:,} more" if len(texts) > MAX_ANSWERS else ""
    return ", ".join(texts[:MAX_ANSWERS]) + more
