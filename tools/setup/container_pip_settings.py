"""pip's settings on this machine, as far as they make sense inside a container."""

import configparser
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tools.setup.subprocess_runner import CommandFailed

CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
INDEXES = ("index-url", "extra-index-url")
CONTAINER_OPTIONS = (*INDEXES, "trusted-host", "timeout", "default-timeout")


def build_container_pip_conf_and_extra_certificates() -> tuple[str, str]:
    """Return a pip.conf for a container, and the certificates that pip uses here besides the system's."""
    files = [Path("/etc/pip.conf"), Path.home() / ".pip/pip.conf", Path.home() / ".config/pip/pip.conf"]
    options = parse_pip_options((file.read_text() for file in files if file.is_file()), os.environ)
    bundle = Path(options.get("cert", CA_BUNDLE))
    has_own_bundle = bundle != Path(CA_BUNDLE) and bundle.is_file()
    return render_container_pip_conf(options), bundle.read_text() if has_own_bundle else ""


def parse_pip_options(config_texts: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the options of pip's configuration files and of PIP_* variables; later ones win, as in pip itself."""
    pairs: list[tuple[str, str]] = []
    for text in config_texts:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text)
        except configparser.Error as error:
            raise CommandFailed(f"pip's settings cannot be read: {error}") from error
        for section in filter(parser.has_section, ("global", "install")):
            pairs += parser.items(section)
    pairs += ((name[4:], value) for name, value in environ.items() if name.startswith("PIP_") and value)
    return {name.lower().replace("_", "-"): value for name, value in pairs}


def render_container_pip_conf(options: Mapping[str, str]) -> str:
    """Return a pip.conf with the indexes that a container can reach and may know, and the system's certificates.

    Folders of this machine do not exist in a container, and a password must not end up in an image.
    """
    lines = ["[global]", f"cert = {CA_BUNDLE}"]
    for name in CONTAINER_OPTIONS:
        values = options.get(name, "").split()
        if name in INDEXES:
            values = [url for url in values if _is_remote_without_credentials(url)]
        if values:
            lines.append(f"{name} = {' '.join(values)}")
    return "\n".join(lines) + "\n"


def _is_remote_without_credentials(index_url: str) -> bool:
    parts = urlsplit(index_url)
    is_local = parts.scheme == "file" or parts.hostname in ("localhost", "127.0.0.1", "::1")
    return not is_local and parts.username is None
