"""Suggestions for unknown names."""

import difflib
from collections.abc import Iterable


def find_closest_name(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, None if none is similar. Case and underscores are ignored."""
    folded = {candidate.lower(): candidate for candidate in sorted(known_names)}
    matches = difflib.get_close_matches(name.replace("_", "").lower(), folded, n=1)
    return folded[matches[0]] if matches else None


def suggestion_or_known_names_text(name: str, known_names: Iterable[str]) -> str:
    """Return `; did you mean X?` with the most similar known name, else the list of known names."""
    known_names = sorted(known_names)
    if closest := find_closest_name(name, known_names):
        return f"; did you mean {closest}?"
    return f"; known: {', '.join(known_names)}" if known_names else ""


def join_with_or(names: Iterable[object]) -> str:
    """Return names as a text: `a`, `a or b`, `a, b or c`."""
    *others, last = (str(name) for name in names)
    return f"{', '.join(others)} or {last}" if others else last
