"""pip's settings on this machine, as far as they make sense inside a container."""

import configparser
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tools.setup.commands import CommandFailed

CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
INDEXES = ("index-url", "extra-index-url")
KEPT = (*INDEXES, "trusted-host", "timeout", "default-timeout")


def read_pip_settings() -> tuple[str, str]:
    """A pip.conf for a container, and the certificates of a bundle that pip uses here besides the system's."""
    files = [Path("/etc/pip.conf"), Path.home() / ".pip/pip.conf", Path.home() / ".config/pip/pip.conf"]
    options = pip_options((file.read_text() for file in files if file.is_file()), os.environ)
    bundle = Path(options.get("cert", CA_BUNDLE))
    own_bundle = bundle != Path(CA_BUNDLE) and bundle.is_file()
    return container_settings(options), bundle.read_text() if own_bundle else ""


def pip_options(files: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The options of pip's configuration files and of PIP_* variables; what comes later wins, as for pip itself."""
    options: dict[str, str] = {}
    for text in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text)
        except configparser.Error as error:
            raise CommandFailed(f"pip's settings cannot be read: {error}") from error
        for section in filter(parser.has_section, ("global", "install")):
            options.update((_option(name), value) for name, value in parser.items(section))
    variables = ((name.removeprefix("PIP_"), value) for name, value in environ.items() if name.startswith("PIP_"))
    options.update((_option(name), value) for name, value in variables if value)
    return options


def container_settings(options: Mapping[str, str]) -> str:
    """A pip.conf with the indexes that a container can reach and may know, and with the system's certificates.

    Folders of this machine do not exist in a container, and a password must not end up in an image.
    """
    lines = ["[global]", f"cert = {CA_BUNDLE}"]
    for name in KEPT:
        values = options.get(name, "").split()
        if name in INDEXES:
            values = [url for url in values if _fits_a_container(url)]
        if values:
            lines.append(f"{name} = {' '.join(values)}")
    return "\n".join(lines) + "\n"


def _option(name: str) -> str:
    return name.lower().replace("_", "-")


def _fits_a_container(url: str) -> bool:
    parts = urlsplit(url)
    on_this_machine = parts.scheme == "file" or parts.hostname in ("localhost", "127.0.0.1", "::1")
    return not on_this_machine and parts.username is None
