"""Who a call of gRPC is from: the connection that the relay has made, by its whole address."""

import pytest

from vertex_emulator.rpc.relay import OWN, Translator


@pytest.mark.parametrize(
    ("peer", "caller"),
    [
        ("ipv4:127.0.0.1:4711", OWN),
        ("ipv4:127.0.0.2:4711", None),  # anybody may connect from there, with the port of a relay
        ("ipv6:[::1]:4711", None),
        ("ipv4:127.0.0.1:4712", None),
        ("ipv4:127.0.0.1:", None),
        ("4711", None),
    ],
)
def test_a_call_is_that_of_its_connection(peer: str, caller: str | None) -> None:
    translator = Translator("http://here")
    translator._callers[4711] = OWN
    assert translator.caller(f"{translator.secret}:{peer}") == caller
    assert translator.caller(f"other:{peer}") is None
