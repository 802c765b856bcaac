import pytest

from vertex_emulator.http.security_middleware import find_host_of_bare_url, is_loopback_host


@pytest.mark.parametrize(
    "host", ["LOCALHOST", "localhost:", "127.0.0.1", "127.0.0.1:80", "localhost:8080", "[::1]:80", "[::1]", "127.9.9.9"]
)
def test_loopback_hosts_are_known_with_any_port(host: str) -> None:
    found = find_host_of_bare_url(f"//{host}")
    assert found is not None
    assert is_loopback_host(found)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "localhost.evil"])
def test_other_hosts_are_not_loopback(host: str) -> None:
    found = find_host_of_bare_url(f"//{host}")
    assert found is not None
    assert not is_loopback_host(found)


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
    assert find_host_of_bare_url(url) is None
