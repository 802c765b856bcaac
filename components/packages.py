"""PythonPackage: a source distribution for `packageUris`, whose name has the digest of its content.

The archive is one that pip builds and installs, equal for equal files. A folder is archived as it is, with its own
pyproject.toml or setup.py. No build backend is run: that would need one to be installed, and each of its versions would
make another archive. So what a backend takes from a repository's history (a version from git's tags) is missing. A
script is wrapped as Google's SDK does in `CustomJob.from_local_script` (2.7, `utils/source_utils.py`), under the same
names.
"""

import hashlib
import io
import json
import os
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_api.validation.formats import Violation

from . import files, providers
from .errors import UploadFailed
from .own import Own
from .plan.arguments import checked, read_arguments
from .plan.programmed import Foundation, default_foundation
from .plan.training import place
from .runtime.resource import DynamicResource, Provider, formerly
from .runtime.storage import store
from .schema import shapes
from .schema.formats import PACKAGE_FOLDER, name_problem
from .schema.source import explain_outside

PythonPackageArgs = shapes.PythonPackage
"""The keys of a Python package, as a TypedDict; docs/configuration.md#packages describes them."""

SCRIPT_PACKAGE = "aiplatform_custom_trainer_script"
"""The package that a script is installed as; a job runs its module `task`."""
_VERSION = "0.1"
_SETUP = """\
from setuptools import find_packages, setup

setup(name={name!r}, version={version!r}, packages=find_packages(), install_requires={requirements!r})
"""
_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
_BUILD_FILES = ("pyproject.toml", "setup.py")


class PythonPackageProvider(Provider):
    """Uploads packages. Deletes none, because a waiting job may still need them."""

    input_names = ("uri", "parent", "package", "files")

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        _upload(props)
        return dynamic.CreateResult(_without_digest(props["uri"]), dict(props))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        if not store(props["parent"]).exists(props["uri"]):
            return dynamic.ReadResult(None, {})
        return self.read_result(id_, props)


class PythonPackage(DynamicResource):
    """A source distribution in the staging folder, for a job's `packageUris`.

        package = PythonPackage("trainer", {"path": "trainer"})

    - `args`: either `path` (a folder with a pyproject.toml or setup.py) or `script` (a Python file) with
      `requirements`; both are relative to the program's folder.
    - `opts`: Pulumi's options. Let jobs depend on the package that they install.
    - `foundation`: whose staging folder it goes to; by default as for `CustomJob`.

    Outputs: `uri`, known in a preview; `reference` is the same as plain text.

    Errors: `errors.DeclarationErrors` for wrong arguments. `pulumi up` fails with `errors.UploadFailed` if the staging
    folder does not take the package, or if its files have changed since the preview.
    """

    output_names = ("uri",)
    uri: pulumi.Output[str]
    """Where the package is: `STAGING/packages/NAME-DIGEST.tar.gz`, with a digest of its content."""
    reference: str
    """The `uri` as plain text, for code that needs it while the program runs."""

    @checked
    def __init__(
        self,
        name: str,
        args: PythonPackageArgs,
        opts: pulumi.ResourceOptions | None = None,
        *,
        foundation: Foundation | None = None,
    ) -> None:
        rules = partial(violations, Path.cwd())
        args = read_arguments(args, place(f'PythonPackage "{name}"'), rules, PythonPackageArgs, name_problem(name))
        foundation = foundation or default_foundation()
        distribution = SourceDistribution.of(Path.cwd(), name, args)
        self.reference = f"{foundation.defaults.folder}/{PACKAGE_FOLDER}/{name}-{distribution.tag}.tar.gz"
        foundation.program.packages[self.reference] = args
        props = {
            "uri": self.reference,
            "parent": foundation.full_location_name,
            "package": {key: value for key, value in args.items() if key != "formerly"},
            "files": files.listed(distribution.archive.digests),
        }
        defaults = pulumi.ResourceOptions(depends_on=[*foundation.job_dependencies])
        options = pulumi.ResourceOptions.merge(formerly(defaults, name, args.get("formerly", [])), opts)
        super().__init__(providers.PythonPackage(), name, props, options)


def _upload(props: dict[str, Any]) -> None:
    """Build a package, and upload it unless its URI has it. Raises UploadFailed if its files changed since the preview.

    What the URI has is compared: a job names its packages without a generation (PythonPackageSpec of the discovery
    document aiplatform v1), so what is there is what it runs.
    """
    uri = props["uri"]
    name = _without_digest(uri).rpartition("/")[2]
    distribution = SourceDistribution.of(Path.cwd(), name, props["package"])
    if not uri.endswith(f"-{distribution.tag}.tar.gz"):
        raise UploadFailed(f"{uri}: its files changed since the preview; run `pulumi up` again")
    content = io.BytesIO(distribution.to_bytes())
    if store(props["parent"]).put(uri, content).is_new:
        print(f"{name}: uploaded {posixpath.basename(uri)}", flush=True)  # noqa: T201


def _without_digest(uri: str) -> str:
    """Return a URI without its digest, which stays the same from edit to edit."""
    return uri.rpartition("-")[0]


@dataclass(frozen=True)
class SourceDistribution:
    """The content of a source distribution, which is archived in one `top_folder`."""

    archive: files.Archive
    top_folder: str

    @classmethod
    def of(cls, root: Path, name: str, package: shapes.PythonPackage) -> "SourceDistribution":
        """Return the source distribution of a declared package, whose paths are relative to `root`."""
        if "path" in package:
            folder = root / package["path"]
            return cls(files.Archive(folder, {path: path for path in _walk(folder)}, {}), name)
        script = root / package["script"]
        metadata = {"name": SCRIPT_PACKAGE, "version": _VERSION}
        texts = {
            "PKG-INFO": _METADATA.format(**metadata),
            "setup.py": _SETUP.format(**metadata, requirements=list(package.get("requirements", []))),
            f"{SCRIPT_PACKAGE}/__init__.py": "",
        }
        code = {f"{SCRIPT_PACKAGE}/task.py": script.name}
        return cls(files.Archive(script.parent, code, texts), f"{SCRIPT_PACKAGE}-{_VERSION}")

    @cached_property
    def tag(self) -> str:
        """The first digits of the digest of everything in the archive."""
        text = json.dumps([self.top_folder, self.archive.digests], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[: files.TAG_LENGTH]

    def to_bytes(self) -> bytes:
        """Return the archive, a `.tar.gz`."""
        stream = io.BytesIO()
        self.archive.write_gzip(stream, self.top_folder)
        return stream.getvalue()


def _walk(folder: Path) -> Iterator[str]:
    """Yield the files of a folder, without hidden folders, what is own, and what Python and its build tools write."""
    own = Own(folder, *(folder / file for file in (*_BUILD_FILES, "MANIFEST.in")))
    for parent, folders, names in os.walk(folder):
        inside = f"{Path(parent).relative_to(folder).as_posix()}/".removeprefix("./")
        names, folders[:] = ([name for name in each if not own.has(inside, name)] for each in (names, folders))
        generated = ("__pycache__", "build", "dist") if Path(parent) == folder else ("__pycache__",)
        folders[:] = [
            name for name in folders if not (name.startswith(".") or name.endswith(".egg-info") or name in generated)
        ]
        for path in (Path(parent, name) for name in (*names, *folders) if not name.endswith((".pyc", ".pyo"))):
            if path.is_symlink() or path.is_file():
                yield path.relative_to(folder).as_posix()


def _unusual_name(paths: Iterable[str], folder: str) -> str | None:
    message = next(filter(None, map(files.unusual_name, paths)), None)
    return message and f"{folder}/{message}; rename the file"


def violations(root: Path, package: shapes.PythonPackage) -> Iterator[Violation]:
    """Find every rule that a declared package breaks; `root` is the project's folder."""
    if ("path" in package) == ("script" in package):
        yield (), "needs either the path of a folder with a pyproject.toml or setup.py, or a script"
        return
    key, path = ("path", package["path"]) if "path" in package else ("script", package["script"])
    build_files = " or ".join(_BUILD_FILES)
    if Path(path).is_absolute():
        yield (key,), f'"{path}" must be relative to the project\'s folder'
    elif message := explain_outside(root, path):
        yield (key,), message
    elif key == "script" and not (path.endswith(".py") and (root / path).is_file()):
        yield (key,), f'"{path}" is not a Python file in {root.name}/'
    elif key == "path" and not any((root / path / file).is_file() for file in _BUILD_FILES):
        yield (key,), f'"{path}" is not a folder with a {build_files} in {root.name}/; write one for pip'
    elif key == "path" and (message := _unusual_name(_walk(root / path), path)):
        yield (key,), message
    if key == "path" and "requirements" in package:
        yield ("requirements",), f"is for a script; declare those of a folder in its {build_files}"
