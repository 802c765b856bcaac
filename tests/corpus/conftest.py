"""The API's client, and a server that keeps what it sends."""

from tests.vertex_api.test_client import api, client, server

__all__ = ["api", "client", "server"]
