"""Python packages as training code comes in: source distributions and wheels, made by setuptools and by hand."""

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

_SETUP = 'from setuptools import setup\nsetup(name="{name}", version="0.1", packages=["{name}"])\n'
_PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "{name}"
version = "0.1"
[tool.setuptools]
packages = ["{name}"]
"""


def sdist(folder: Path, name: str, script: str, build: str = _SETUP, build_file: str = "setup.py") -> str:
    """A source distribution of a package whose module `task` is `script`; the file's name."""
    files = {build_file: build.format(name=name), **_modules(name, script)}
    path = folder / f"{name}-0.1.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n"
    with tarfile.open(path, "w:gz") as archive:
        for inner, text in {"PKG-INFO": metadata, **files}.items():
            entry = tarfile.TarInfo(f"{name}-0.1/{inner}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path.name


def sdist_with_a_build_backend(folder: Path, name: str, script: str) -> str:
    """The same with a pyproject.toml, which makes pip fetch the build backend; the file's name."""
    return sdist(folder, name, script, _PROJECT, "pyproject.toml")


def wheel(folder: Path, name: str, script: str, requires: str = "") -> str:
    """A wheel of the same package, which needs no build; the file's name."""
    info = f"{name}-0.1.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n"
    files = {
        **_modules(name, script),
        f"{info}/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    path = folder / f"{name}-0.1-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in {**files, f"{info}/RECORD": _record(files, info)}.items():
            archive.writestr(inner, text)
    return path.name


def _modules(name: str, script: str) -> dict[str, str]:
    return {f"{name}/__init__.py": "", f"{name}/task.py": script}


def _record(files: Mapping[str, str], info: str) -> str:
    def row(name: str, text: str) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(text.encode())}"

    return "\n".join([*(row(*file) for file in files.items()), f"{info}/RECORD,,"]) + "\n"
