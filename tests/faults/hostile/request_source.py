"""Random requests as bytes: drafts with changed paths, queries and headers, in pieces and malformed."""

from dataclasses import dataclass
from random import Random
from urllib.parse import urlencode

from tests.faults.hostile.known_names import KnownNames
from tests.faults.hostile.route_drafts import Draft, RouteDrafts
from tests.faults.hostile.values import HEADERS, MALFORMED_REQUESTS, METHODS, QUERY_NAMES, SEGMENTS, TARGETS

MAX_SECONDS = 2.0
_SEARCH_SECONDS = 4.0  # docs/security.md: a search of a log returns after 2 s
_HOSTS = ("localhost", "127.0.0.1", "[::1]", "localhost:1")


@dataclass(frozen=True)
class Request:
    """A request's bytes. After one that is not `is_whole`, the client leaves after `pause` seconds.

    One that can be endless reads files that containers can make endless, or that never stop by design.
    """

    head: bytes
    body: bytes = b""
    is_whole: bool = True
    pause: float = 0.0
    max_seconds: float = MAX_SECONDS
    can_be_endless: bool = False

    @property
    def line(self) -> str:
        return self.head.partition(b"\r\n")[0][:200].decode(errors="backslashreplace")


class RequestSource:
    """An endless source of requests by dice."""

    def __init__(self, dice: Random, known: KnownNames) -> None:
        self._dice, self._drafts = dice, RouteDrafts(dice, known)

    def build_request(self) -> Request:
        """Return the next request."""
        dice = self._dice
        if dice.random() < 0.04:
            malformed = dice.choice([*MALFORMED_REQUESTS, dice.randbytes(300) + b"\r\n\r\n"])
            return Request(malformed, is_whole=False, pause=dice.uniform(0, 0.3))
        draft = self._drafts.build_draft()
        if dice.random() < 0.1:
            draft = draft._replace(method=dice.choice(METHODS))
        if dice.random() < 0.15:
            draft = draft._replace(path=self._mutate_path(draft.path))
        while dice.random() < 0.2:
            draft = draft._replace(query=[*draft.query, (dice.choice(QUERY_NAMES), self._drafts.choose_text())])
        while dice.random() < 0.25:
            draft = draft._replace(headers=[*draft.headers, dice.choice(HEADERS)])
        return self._render(draft)

    def _render(self, draft: Draft) -> Request:
        dice = self._dice
        target = draft.path + (f"?{urlencode(draft.query, errors='surrogatepass')}" if draft.query else "")
        lines = [f"{draft.method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in draft.headers)]
        if not any(name == "Host" for name, _ in draft.headers):
            lines.append(f"Host: {dice.choice(_HOSTS)}")
        body = draft.body
        if body and dice.random() < 0.1:
            lines.append("Transfer-Encoding: chunked")
            body = _split_into_chunks(body, dice.choice([1, 7, 4096]) if len(body) < 5000 else len(body))
        elif body or draft.method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines).encode(dice.choice(["utf-8", "latin-1"]), "replace") + b"\r\n\r\n"
        if dice.random() < 0.06:
            head, body = (head, body[: len(body) // 2]) if body else (head[: dice.randrange(len(head))], b"")
            return Request(head, body, is_whole=False, pause=dice.choice([0.0, 0.0, 0.5, 5.0]))
        max_seconds = _SEARCH_SECONDS if draft.path.startswith("/v2/") else MAX_SECONDS
        return Request(head, body, max_seconds=max_seconds, can_be_endless=_can_be_endless(draft.method, target))

    def _mutate_path(self, path: str) -> str:
        dice, segments = self._dice, path.split("/")
        if dice.random() < 0.1:
            return dice.choice(TARGETS)
        position = dice.randrange(len(segments))
        segments[position : position + dice.randrange(2)] = [dice.choice(SEGMENTS)]
        return "/".join(segments)


def _can_be_endless(method: str, target: str) -> bool:
    """Whether an answer takes the time of a file's checksums, or is a stream of events.

    The file `zeros` has a size of 8 TiB at times, and may be the object of a finished upload.
    """
    return ("zeros" in target and "/o/" in target) or (method == "PUT" and "upload_id" in target) or "/events" in target


def _split_into_chunks(body: bytes, size: int) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
