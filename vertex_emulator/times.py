"""RFC 3339 times and google.protobuf.Duration texts."""

import re
import time
from datetime import UTC, datetime

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)")


def now_ns() -> int:
    """The time in nanoseconds since 1970."""
    return time.time_ns()


def format_time(nanoseconds: int) -> str:
    """RFC 3339 in UTC with microseconds, the form of the service's own times."""
    moment = datetime.fromtimestamp(nanoseconds // 10**9, UTC).isoformat()
    return f"{moment[:19]}.{nanoseconds % 10**9 // 1000:06d}Z"


def parse_time(text: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 text with up to nine fraction digits; None when it is none."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match[1] + ("+00:00" if match[3] in "Zz" else match[3]))
    except ValueError:
        return None
    return int(moment.timestamp()) * 10**9 + int((match[2] or "").ljust(9, "0"))
