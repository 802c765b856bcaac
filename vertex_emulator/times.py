"""Times as RFC 3339 texts and as nanoseconds since 1970."""

import re
import time
from datetime import UTC, datetime
from functools import lru_cache

_MIN_SECONDS, _MAX_SECONDS = -62_135_596_800, 253_402_300_799  # the years 1 and 9999, which RFC 3339 ends with
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)")


def now_ns() -> int:
    """Return the time in ns since 1970."""
    return time.time_ns()


def format_time(nanoseconds: int) -> str:
    """Format a time (ns since 1970) as RFC 3339 in UTC with microseconds, as the service does.

    Times beyond the years 1 to 9999, which a container can give its files, become the first or last one.
    """
    seconds = min(max(nanoseconds // 10**9, _MIN_SECONDS), _MAX_SECONDS)
    minute, second = divmod(seconds, 60)
    return f"{_format_minute(minute)}:{second:02d}.{nanoseconds % 10**9 // 1000:06d}Z"


@lru_cache(maxsize=4096)  # a page of studies has thousands of times, within few hours
def _format_minute(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).isoformat()[:16]


def short_time(nanoseconds: int) -> str:
    """Format a time as `format_time` does, without a fraction of a second that is zero."""
    return format_time(nanoseconds).replace(".000000Z", "Z")


def parse_time(text: str) -> int | None:
    """Parse an RFC 3339 time with up to nine fraction digits to ns since 1970; None if it is not one."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match[1] + ("+00:00" if match[3] in "Zz" else match[3]))
    except ValueError:
        return None
    return int(moment.timestamp()) * 10**9 + int((match[2] or "").ljust(9, "0"))
