"""What a server may make a client do: answer once, in bounded time and memory, and lead nowhere else.

`requests` follows redirects, reads bodies of any size, and waits for ever for a server that sends a byte a minute: its
timeout is that of one read. Google's APIs need none of it.
"""

import threading
from contextlib import suppress
from traceback import walk_tb
from typing import Any

import requests
from requests.adapters import HTTPAdapter

MAX_ANSWER_BYTES = 64 << 20
"""Of a body once it is decompressed. A page of 100 jobs of the largest kind has some 10 MiB."""
MAX_SECONDS = 120.0
"""Of a call from its start to the last byte of its answer."""
_BLOCK_BYTES = 64 << 10
_READERS = {"google", "proto", "requests", "requests_toolbelt", "urllib3"}
"""The libraries that read answers."""
_answered = threading.local()


class AnswerRefused(requests.RequestException):
    """A server answers as no API does. The message is one line."""


class BoundedAdapter(HTTPAdapter):
    """Sends requests for a session. Raises AnswerRefused for redirects, and for what is too large or takes too long."""

    def __init__(self, seconds: float | None = None) -> None:
        super().__init__()
        self._seconds = seconds

    def send(self, request: Any, **options: Any) -> Any:  # type: ignore[override]
        address, seconds = "/".join(str(request.url).split("/")[:3]), self._seconds or MAX_SECONDS
        outcome: list[Any] = []
        responses: list[requests.Response] = []

        def exchange() -> None:
            try:
                responses.append(super(BoundedAdapter, self).send(request, **{**options, "stream": True}))
                outcome.append(_read(responses[0], address))
            except BaseException as error:  # noqa: BLE001  # raised below, in the thread that waits
                outcome.append(error)

        # A thread, because no timeout of a socket ends an answer whose parts come one by one. A late one is left alone.
        thread = threading.Thread(target=exchange, daemon=True)
        thread.start()
        thread.join(seconds)
        if not outcome:
            for response in responses:
                with suppress(AttributeError, OSError, RuntimeError, ValueError):  # urllib3 has it from 2.3 on
                    response.raw.shutdown()  # `close` waits for the other thread
            raise AnswerRefused(f"{address} has not answered in full within {seconds:.0f} s", request=request)
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        _answered.count = answers() + 1
        return outcome[0]


def mount(session: Any, seconds: float | None = None) -> Any:
    """Return the session, all requests of which are bounded from now on."""
    for scheme in ("https://", "http://"):
        session.mount(scheme, BoundedAdapter(seconds))
    return session


def answers() -> int:
    """Return how many answers this thread has got."""
    return getattr(_answered, "count", 0)


def is_of_answer(error: BaseException, answers_before: int) -> bool:
    """Whether a library raised an error for an answer since `answers_before`, or for one to a request for a token.

    Any other is a mistake in a program, here or in the caller's, and no outage: it must not be tried again.
    """
    modules = [str(frame.f_globals.get("__name__", "")) for frame, _ in walk_tb(error.__traceback__)]
    is_of_library = any(name.partition(".")[0] in _READERS for name in modules)
    is_of_token = any(name.startswith(("google.auth.", "google.oauth2.")) for name in modules)
    return is_of_library and (is_of_token or answers() > answers_before)


def _read(response: requests.Response, address: str) -> requests.Response:
    """Return the response with all of its content."""
    if response.is_redirect:
        response.close()
        target = response.headers["location"]
        raise AnswerRefused(f"{address} redirects to {target[:200]}, which no API does", request=response.request)
    blocks, size = [], 0
    for block in response.iter_content(_BLOCK_BYTES):
        blocks.append(block)
        size += len(block)
        if size > MAX_ANSWER_BYTES:
            response.close()
            limit = MAX_ANSWER_BYTES >> 20
            raise AnswerRefused(f"{address} answers with more than {limit} MiB", request=response.request)
    response._content, response._content_consumed = b"".join(blocks), True
    return response
