"""Who a call of gRPC is from: the connection that the relay has made, by its whole address; how many each has."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from vertex_emulator.http.connection import ADMIT, PEER_USER
from vertex_emulator.rpc.relay import Translator

NOBODY = 65_534
ME = {PEER_USER: os.geteuid(), ADMIT: print}


@pytest.mark.parametrize(
    ("peer", "caller"),
    [
        ("ipv4:127.0.0.1:4711", "me"),
        ("ipv4:127.0.0.2:4711", None),  # anybody may connect from there, with the port of a relay
        ("ipv6:[::1]:4711", None),
        ("ipv4:127.0.0.1:4712", None),
        ("ipv4:127.0.0.1:", None),
        ("4711", None),
    ],
)
def test_a_call_is_that_of_its_connection(peer: str, caller: str | None) -> None:
    translator = Translator("http://here")
    translator._callers[4711] = "me"
    assert translator.caller(f"{translator.secret}:{peer}") == caller
    assert translator.caller(f"other:{peer}") is None


class Client:
    """A connection of somebody, as far as a relay asks."""

    def __init__(self) -> None:
        self.is_closed = False

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return "10.0.0.7", 1

    def close(self) -> None:
        self.is_closed = True


class Accepted(asyncio.Protocol):
    """What one server of the process gets."""

    def __init__(self, all_of_it: "list[Accepted]") -> None:
        all_of_it.append(self)
        self.data, self.is_lost = b"", False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, _exc: Exception | None) -> None:
        self.is_lost = True


Got = tuple[list[Accepted], list[Accepted]]


def relaying(work: Callable[[Translator, Got], Awaitable[None]]) -> None:
    """Do some work with a translator whose process is two servers, and the connections that each has got."""

    async def run() -> None:
        loop, got = asyncio.get_running_loop(), Got(([], []))
        servers = [await loop.create_server(partial(Accepted, each), "127.0.0.1", 0) for each in got]
        first, second = (server.sockets[0].getsockname()[1] for server in servers)
        translator = Translator("http://here")
        translator.ports = lambda: (first, second)  # type: ignore[method-assign]
        await work(translator, got)
        while not all(each.is_lost for each in (*got[0], *got[1])):
            await asyncio.sleep(0)
        for server in servers:
            server.close()

    asyncio.run(run())


def test_a_port_is_not_taken_while_its_caller_is_remembered() -> None:
    class Remembering(dict[int, Any]):
        """One in which the first port that is asked for is that of a caller who has left."""

        first: int | None = None

        def __contains__(self, port: object) -> bool:
            self.first = self.first or int(str(port))
            return port == self.first

    async def work(translator: Translator, got: Got) -> None:
        callers = translator._callers = Remembering()
        client: Any = Client()
        relay = await translator.relay_own(client, b"first", ME)
        assert list(callers) and callers.first not in list(callers)
        while sorted(each.data for each in got[0]) != [b"", b"first"]:
            await asyncio.sleep(0)
        assert not client.is_closed
        relay.close()

    relaying(work)


def test_others_than_the_owner_have_few_connections_each() -> None:
    async def work(translator: Translator, got: Got) -> None:
        async def relayed(user: int | None, count: int) -> list[Any]:
            state = {PEER_USER: user, ADMIT: print}
            client: Any = Client()
            return [await translator.relay_own(client, b"first", state) for _ in range(count)]

        relays = await relayed(NOBODY, 16)
        with pytest.raises(PermissionError, match="uid 65534 has 16 connections"):
            await relayed(NOBODY, 1)
        relays += await relayed(os.geteuid(), 40) + await relayed(None, 16) + await relayed(0, 1)
        with pytest.raises(PermissionError, match=r"10\.0\.0\.7"):
            await relayed(None, 1)
        assert [relay.is_checked for relay in relays] == [False] * 16 + [True] * 40 + [False] * 16 + [True]
        while [len(each) for each in got] != [41, 32]:
            await asyncio.sleep(0)
        for relay in relays:
            relay.close()
        while translator._connections:
            await asyncio.sleep(0)
        (again,) = await relayed(NOBODY, 1)
        assert translator._connections == {f"uid {NOBODY}": 1}
        again.close()

    relaying(work)


def test_a_caller_keeps_the_user_that_the_kernel_tells() -> None:
    async def work(translator: Translator, _got: object) -> None:
        client: Any = Client()
        relay = await translator.relay_own(client, b"first", {PEER_USER: NOBODY, ADMIT: print, "more": 1})
        ((port, caller),) = translator._callers.items()
        assert translator.caller(f"{translator.secret}:ipv4:127.0.0.1:{port}") == caller
        assert caller == {PEER_USER: NOBODY, ADMIT: print}
        relay.close()

    relaying(work)
