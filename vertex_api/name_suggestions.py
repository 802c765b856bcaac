"""Suggestions for unknown names."""

import difflib
from collections.abc import Iterable

_MAX_LENGTH = 200
_MAX_COMPARED, _MAX_LISTED = 1000, 50


def find_closest_name_or_none(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, None if none is similar. Case and underscores are ignored.

    Returns None too for a name that is no name by its length, and among so many known names that it would take long.
    """
    known_names = list(known_names)
    if len(name) > _MAX_LENGTH or len(known_names) > _MAX_COMPARED:
        return None
    folded = {candidate.lower(): candidate for candidate in sorted(known_names)}
    matches = difflib.get_close_matches(name.replace("_", "").lower(), folded, n=1)
    return folded[matches[0]] if matches else None


def suggestion_or_known_names_text(name: str, known_names: Iterable[str]) -> str:
    """Return `; did you mean X?` with the most similar known name, else the list of known names or its beginning."""
    known_names = sorted(known_names)
    if closest := find_closest_name_or_none(name, known_names):
        return f"; did you mean {closest}?"
    more = f" and {len(known_names) - _MAX_LISTED} more" if len(known_names) > _MAX_LISTED else ""
    return f"; known: {', '.join(known_names[:_MAX_LISTED])}{more}" if known_names else ""


def join_with_or(names: Iterable[object]) -> str:
    """Return names as a text: `a`, `a or b`, `a, b or c`."""
    *others, last = (str(name) for name in names)
    return f"{', '.join(others)} or {last}" if others else last
