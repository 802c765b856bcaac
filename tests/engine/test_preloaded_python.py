"""The process whose forks stand for those of `pulumi`: it outlives all that happens to its clients."""

import os
import selectors
import socket

import pytest

from tests.engine.preloaded_python import _Fork

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="all processes are started there")


def test_a_client_that_goes_as_its_fork_ends_does_no_harm() -> None:
    ours, client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    with selectors.DefaultSelector() as selector:
        _Fork(pid, ours, selector)
        client.close()
        events = []
        while len(events) < 2:
            events = selector.select()
        for key, _ in sorted(events, key=lambda event: event[0].fileobj is ours):
            key.data()
        assert not selector.get_map()
