"""Which of this machine's pip settings go into a container."""

import pytest

from tools.setup.container_pip_settings import parse_pip_options, render_container_pip_conf
from tools.setup.subprocess_runner import CommandFailed

CERT = "cert = /etc/ssl/certs/ca-certificates.crt"


def test_variables_override_later_files_override_earlier() -> None:
    system = "[global]\nindex-url = https://system/simple\ntimeout = 15\n"
    user = "[global]\nindex_url = https://user/simple\n[install]\ntrusted-host = user\n"
    options = parse_pip_options([system, user], {"PIP_DEFAULT_TIMEOUT": "60", "PIP_TRUSTED_HOST": "", "PIPX": "no"})
    assert options == {
        "index-url": "https://user/simple",
        "timeout": "15",
        "trusted-host": "user",
        "default-timeout": "60",
    }


def test_indexes_and_trusted_hosts_reach_the_container() -> None:
    options = {"index-url": "https://mirror/simple", "trusted-host": "mirror\nother", "timeout": "60"}
    assert render_container_pip_conf(options).splitlines() == [
        "[global]",
        CERT,
        "index-url = https://mirror/simple",
        "trusted-host = mirror other",
        "timeout = 60",
    ]


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:3141/simple",
        "http://127.0.0.1/simple",
        "file:///opt/wheels",
        "https://me:secret@mirror/simple",
        "https://token@mirror/simple",
    ],
)
def test_local_and_secret_indexes_are_left_out(url: str) -> None:
    settings = render_container_pip_conf({"index-url": url, "extra-index-url": f"{url} https://mirror/simple"})
    assert settings.splitlines() == ["[global]", CERT, "extra-index-url = https://mirror/simple"]


def test_settings_of_this_machine_are_left_out() -> None:
    options = parse_pip_options([], {"PIP_FIND_LINKS": "/opt/wheels", "PIP_CACHE_DIR": "/c", "PIP_CERT": "/my.pem"})
    assert render_container_pip_conf(options).splitlines() == ["[global]", CERT]


def test_a_broken_file_is_reported_as_such() -> None:
    with pytest.raises(CommandFailed, match="pip's settings cannot be read"):
        parse_pip_options(["no section"], {})
