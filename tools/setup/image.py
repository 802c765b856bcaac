"""The base image of the examples: present, pulled, or made with debootstrap if no registry can be reached."""

import configparser
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tools.setup import programs
from tools.setup.programs import CommandFailed, Output, SetupError, run

TAG = "python:3.11-slim-bookworm"
LABEL = "vertex-training.made-with"
INSPECT_LIMIT_SECONDS = 15
PULL_LIMIT_SECONDS = 180
RELEASE = "bookworm"
PACKAGES = ("python3", "python3-pip", "python3-venv", "ca-certificates")
CA_FOLDER = "/usr/local/share/ca-certificates"
# Of no use in a container; Docker provides the content of /dev, /proc and /sys.
EXCLUDED_FOLDERS = (
    *("dev", "proc", "sys", "var/cache/apt", "var/lib/apt/lists", "var/log"),
    *("usr/share/doc", "usr/share/man", "usr/share/locale"),
)
# On disk, while /tmp may be in memory and may forbid device files.
WORK_FOLDER = Path("/var/tmp")
CHANGES = (
    'CMD ["python3"]',
    "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV LANG=C.UTF-8",
)
BOOTSTRAP_LIMIT_SECONDS = 900
IMPORT_LIMIT_SECONDS = 300
CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
INDEXES = ("index-url", "extra-index-url")
CONTAINER_OPTIONS = (*INDEXES, "trusted-host", "timeout", "default-timeout")


def find() -> str | None:
    """Describe the image; return `None` if the daemon does not have it."""
    command = ("docker", "image", "inspect", "--format", "{{json .Config.Labels}}", TAG)
    try:
        labels = json.loads(run(*command, limit=INSPECT_LIMIT_SECONDS)) or {}
    except CommandFailed:
        return None
    return f"Base image: {TAG}" + (f", made here with {labels[LABEL]}" if labels.get(LABEL) else "")


def make(output: Output) -> str:
    """Pull the image or, if that fails, build one like it. Raises SetupError."""
    try:
        progress = output.progress(f"pulling {TAG}")
        run("docker", "pull", TAG, limit=PULL_LIMIT_SECONDS, progress=progress)
    except CommandFailed as pull_error:
        try:
            build(output)
        except CommandFailed as build_error:
            raise SetupError(
                f"Base image: {TAG} could neither be pulled nor made here.\n  pulling: {pull_error}\n"
                f"  making: {build_error}\nGet the image onto this machine (`docker pull` through a mirror, or "
                "`docker load` of a saved one), then run `make setup` again."
            ) from build_error
        return f"Base image: {TAG}, made here with debootstrap because it could not be pulled"
    return f"Base image: {TAG}, pulled"


def build(output: Output) -> None:
    """Build a Debian system with Python and pip, and import it into Docker as TAG. Raises CommandFailed."""
    if shutil.which("debootstrap") is None:
        if not programs.can_install():
            raise CommandFailed("there is no `debootstrap`, which root can install on Debian with apt-get")
        programs.install_packages(output, "debootstrap", "debian-archive-keyring")
    if os.geteuid() != 0:
        raise CommandFailed("debootstrap needs root: `sudo python3 -m tools.setup image` makes the image")
    folder = Path(tempfile.mkdtemp(prefix="vertex-training-", dir=WORK_FOLDER))
    try:
        root = folder / "root"
        progress = output.progress("making the base image with debootstrap, a minute or two, once")
        command = ("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", RELEASE, root)
        run(*command, limit=BOOTSTRAP_LIMIT_SECONDS, progress=progress)
        add_python(root)
        copy_pip_settings(root)
        _import(root, folder / "root.tar", output)
    finally:
        # If debootstrap has left its mounts of /proc and /sys, this does not go into them.
        run("rm", "-rf", "--one-file-system", folder, limit=IMPORT_LIMIT_SECONDS, undisturbed=True)


def add_python(root: Path) -> None:
    """Add the `python` command, and let pip install without a virtual environment."""
    (root / "usr/bin/python").symlink_to("python3")
    for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()


def copy_pip_settings(root: Path) -> None:
    """Let pip in builds reach what it reaches on this machine: the same certificate authorities, the same index."""
    settings, extra_bundle = pip_settings()
    bundle = root / CA_BUNDLE.lstrip("/")
    if Path(CA_BUNDLE).exists():
        shutil.copyfile(CA_BUNDLE, bundle)
    if extra_bundle:
        with bundle.open("a") as file:
            file.write("\n" + extra_bundle)
    if Path(CA_FOLDER).is_dir():  # an update-ca-certificates in a build keeps them
        shutil.copytree(CA_FOLDER, root / CA_FOLDER.lstrip("/"), dirs_exist_ok=True)
    (root / "etc/pip.conf").write_text(settings)


def _import(root: Path, archive: Path, output: Output) -> None:
    progress = output.progress("importing the base image into Docker")
    excludes = [f"--exclude=./{name}/*" for name in EXCLUDED_FOLDERS]
    run("tar", "-C", root, *excludes, "-cf", archive, ".", limit=IMPORT_LIMIT_SECONDS, progress=progress)
    changes = [f"--change={change}" for change in (*CHANGES, f"LABEL {LABEL}=debootstrap")]
    run("docker", "import", *changes, archive, TAG, limit=IMPORT_LIMIT_SECONDS, progress=progress)


def pip_settings() -> tuple[str, str]:
    """Return a pip.conf for a container, and the certificates that pip uses here besides the system's."""
    files = [Path("/etc/pip.conf"), Path.home() / ".pip/pip.conf", Path.home() / ".config/pip/pip.conf"]
    options = parse_pip((file.read_text() for file in files if file.is_file()), os.environ)
    bundle = Path(options.get("cert", CA_BUNDLE))
    has_own_bundle = bundle != Path(CA_BUNDLE) and bundle.is_file()
    return render_pip(options), bundle.read_text() if has_own_bundle else ""


def parse_pip(config_texts: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the options of pip's configuration files and of PIP_* variables; later ones win, as in pip itself."""
    pairs: list[tuple[str, str]] = []
    for text in config_texts:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text)
        except configparser.Error as error:
            # The error itself quotes the line, which may be an index with a password.
            lines = [error.lineno] if hasattr(error, "lineno") else [line for line, _ in getattr(error, "errors", ())]
            raise CommandFailed(f"pip's settings cannot be read: line {', '.join(map(str, lines))}") from None
        for section in filter(parser.has_section, ("global", "install")):
            pairs += parser.items(section)
    pairs += ((name[4:], value) for name, value in environ.items() if name.startswith("PIP_") and value)
    return {name.lower().replace("_", "-"): value for name, value in pairs}


def render_pip(options: Mapping[str, str]) -> str:
    """Return a pip.conf with the indexes that a container can reach and may know, and the system's certificates.

    Folders of this machine do not exist in a container, and a password must not end up in an image.
    """
    lines = ["[global]", f"cert = {CA_BUNDLE}"]
    for name in CONTAINER_OPTIONS:
        values = options.get(name, "").split()
        if name in INDEXES:
            values = [url for url in values if _is_public(url)]
        if values:
            lines.append(f"{name} = {' '.join(values)}")
    return "\n".join(lines) + "\n"


def _is_public(index_url: str) -> bool:
    parts = urlsplit(index_url)
    is_local = parts.scheme == "file" or parts.hostname in ("localhost", "127.0.0.1", "::1")
    return not is_local and parts.username is None
