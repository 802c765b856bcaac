import asyncio
import json
from typing import Any

import pytest

from vertex_emulator.http.security import Access, SecurityMiddleware, host_of, is_loopback


@pytest.mark.parametrize(
    "host", ["LOCALHOST", "localhost:", "127.0.0.1", "127.0.0.1:80", "localhost:8080", "[::1]:80", "[::1]", "127.9.9.9"]
)
def test_loopback_hosts_are_known_with_any_port(host: str) -> None:
    found = host_of(f"//{host}")
    assert found is not None
    assert is_loopback(found)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "localhost.evil"])
def test_other_hosts_are_not_loopback(host: str) -> None:
    found = host_of(f"//{host}")
    assert found is not None
    assert not is_loopback(found)


@pytest.mark.parametrize(
    "url",
    [
        *("", "null", "//", "//127.0.0.1/x", "//user@127.0.0.1", "//127.0.0.1:port", "//[::1", "//127.0.0.1:65536"),
        *("//localhost#evil.example", "//localhost?evil.example", "//localhost#", "//localhost?", "//local\thost"),
        *("//[::1]evil.example", "//evil.example[::1]", "//[::1].evil.example", "//localhost,evil.example"),
        *("//localhost\\@evil.example", "//localhost%00", "//localhost\n", "//[fe80::1%lo]", "//localhost evil"),
    ],
)
def test_what_is_no_host_is_none(url: str) -> None:
    assert host_of(url) is None


@pytest.mark.parametrize("begins", [False, True])
def test_requests_cut_by_a_stop_are_unavailable(begins: bool) -> None:
    """Clients repeat a request that is answered 503; what has begun has a status already."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def respond(_scope: Any, _receive: Any, send: Any) -> None:
        if begins:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()

    async def stop_soon() -> None:
        app = SecurityMiddleware(respond, "1", Access("token"))
        headers = [(b"host", b"localhost"), (b"authorization", b"Bearer token")]
        scope = {"type": "http", "scheme": "http", "method": "GET", "path": "/v1", "headers": headers}
        request = asyncio.ensure_future(app(scope, lambda: None, send))  # type: ignore[arg-type, return-value]
        while begins and not sent and not request.done():
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        request.cancel()
        await request

    if begins:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(stop_soon())
        assert [message.get("status") for message in sent] == [200]
        return
    asyncio.run(stop_soon())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["error"]["status"] == "UNAVAILABLE"
