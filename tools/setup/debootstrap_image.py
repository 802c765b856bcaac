"""A substitute for Docker Hub's Python image, built from Debian's packages with debootstrap."""

import os
import shutil
import tempfile
from pathlib import Path

from tools.setup import debian_packages
from tools.setup.container_pip_settings import CA_BUNDLE, build_container_pip_conf_and_extra_certificates
from tools.setup.progress_output import ProgressOutput
from tools.setup.subprocess_runner import CommandFailed, run_program

RELEASE = "bookworm"
PACKAGES = ("python3", "python3-pip", "python3-venv", "ca-certificates")
CA_FOLDER = "/usr/local/share/ca-certificates"
# Of no use in a container; Docker provides the content of /dev, /proc and /sys.
EXCLUDED_FOLDERS = ["dev", "proc", "sys", "var/cache/apt", "var/lib/apt/lists", "var/log"]
EXCLUDED_FOLDERS += ["usr/share/doc", "usr/share/man", "usr/share/locale"]
# On disk, while /tmp may be in memory and may forbid device files.
WORK_FOLDER = Path("/var/tmp")
CHANGES = (
    'CMD ["python3"]',
    "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV LANG=C.UTF-8",
)
BOOTSTRAP_LIMIT_SECONDS = 900
IMPORT_LIMIT_SECONDS = 300


def build_image(tag: str, label: str, output: ProgressOutput) -> None:
    """Build a Debian system with Python and pip, and import it into Docker as `tag`. Raises CommandFailed."""
    if shutil.which("debootstrap") is None:
        if not debian_packages.can_install():
            raise CommandFailed("there is no `debootstrap`, which root can install on Debian with apt-get")
        debian_packages.install_packages(output, "debootstrap", "debian-archive-keyring")
    if os.geteuid() != 0:
        raise CommandFailed("debootstrap needs root: `sudo python3 -m tools.setup image` makes the image")
    folder = Path(tempfile.mkdtemp(prefix="vertex-training-", dir=WORK_FOLDER))
    try:
        root = folder / "root"
        progress = output.create_seconds_callback("making the base image with debootstrap, a minute or two, once")
        command = ("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", RELEASE, root)
        run_program(*command, limit=BOOTSTRAP_LIMIT_SECONDS, progress=progress)
        add_python_command_and_allow_pip_install(root)
        copy_certificates_and_pip_settings(root)
        _import_into_docker(root, folder / "root.tar", tag, label, output)
    finally:
        # If debootstrap has left its mounts of /proc and /sys, this does not go into them.
        run_program("rm", "-rf", "--one-file-system", folder, limit=IMPORT_LIMIT_SECONDS)


def add_python_command_and_allow_pip_install(root: Path) -> None:
    """Add the `python` command, and let pip install without a virtual environment."""
    (root / "usr/bin/python").symlink_to("python3")
    for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()


def copy_certificates_and_pip_settings(root: Path) -> None:
    """Let pip in builds reach what it reaches on this machine: the same certificate authorities, the same index."""
    settings, extra_bundle = build_container_pip_conf_and_extra_certificates()
    bundle = root / CA_BUNDLE.lstrip("/")
    if Path(CA_BUNDLE).exists():
        shutil.copyfile(CA_BUNDLE, bundle)
    if extra_bundle:
        with bundle.open("a") as file:
            file.write("\n" + extra_bundle)
    if Path(CA_FOLDER).is_dir():  # an update-ca-certificates in a build keeps them
        shutil.copytree(CA_FOLDER, root / CA_FOLDER.lstrip("/"), dirs_exist_ok=True)
    (root / "etc/pip.conf").write_text(settings)


def _import_into_docker(root: Path, archive: Path, tag: str, label: str, output: ProgressOutput) -> None:
    progress = output.create_seconds_callback("importing the base image into Docker")
    excludes = [f"--exclude=./{name}/*" for name in EXCLUDED_FOLDERS]
    run_program("tar", "-C", root, *excludes, "-cf", archive, ".", limit=IMPORT_LIMIT_SECONDS, progress=progress)
    changes = [f"--change={change}" for change in (*CHANGES, f"LABEL {label}=debootstrap")]
    run_program("docker", "import", *changes, archive, tag, limit=IMPORT_LIMIT_SECONDS, progress=progress)
