"""The socket that the emulator listens on."""

import socket
from pathlib import Path

from vertex_emulator.database import Database
from vertex_emulator.server import _open_listener_and_store_port


def test_replies_are_sent_without_delay(tmp_path: Path) -> None:
    database = Database(tmp_path / "emulator.db")
    with (
        _open_listener_and_store_port("127.0.0.1", None, database) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    database.close()
