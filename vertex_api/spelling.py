"""Help with names that are not known."""

import difflib
from collections.abc import Iterable


def find_closest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is spelled most alike, if one is; case and underscores do not count."""
    folded = {candidate.lower(): candidate for candidate in sorted(known)}
    found = difflib.get_close_matches(name.replace("_", "").lower(), folded, n=1)
    return folded[found[0]] if found else None


def suggestion_text(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the known name that is spelled most alike, else the list of known names."""
    known = sorted(known)
    found = find_closest_name(name, known)
    if found:
        return f"; did you mean {found}?"
    return f"; known: {', '.join(known)}" if known else ""


def join_with_or(names: Iterable[object]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *others, last = (str(name) for name in names)
    return f"{', '.join(others)} or {last}" if others else last
