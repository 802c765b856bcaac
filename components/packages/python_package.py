"""PythonPackage: a source distribution whose name is the digest of its content, uploaded where there is none yet."""

import posixpath
from pathlib import Path
from typing import Any, cast

import pulumi
from pulumi import dynamic

from ..errors import UploadFailed
from ..files.content_digests import short_digests
from ..runtime.engine import Provider
from ..runtime.foundation import Foundation
from ..schema import shapes
from . import object_store
from .source_distribution import SourceDistribution

_FOLDER = "packages"
_INPUTS = ("uri", "parent", "package", "files")


class PythonPackageProvider(Provider):
    """Uploads packages; deleting one leaves it alone, for a job that is waiting may need it still."""

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        _upload(props)
        return dynamic.CreateResult(_id(props["uri"]), dict(props))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        _upload(news)
        return dynamic.UpdateResult(dict(news))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        if not object_store.store_of(props["parent"]).has(props["uri"]):
            return dynamic.ReadResult(None, {})
        inputs = {name: props[name] for name in _INPUTS if name in props}
        return dynamic.ReadResult(id_, dict(inputs), inputs)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        return None


class PythonPackage(dynamic.Resource, module="vertex", name="PythonPackage"):
    """A source distribution in the staging folder, for a job's `packageUris`.

    `uri` is known in a preview: `<staging>/packages/<name>-<digest of what is in it>.tar.gz`. `package` has either
    `path` (a folder with a pyproject.toml or setup.py) or `script` (a Python file) with `requirements`; both are
    relative to the program's folder.
    """

    uri: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        package: shapes.PythonPackage,
        *,
        foundation: Foundation,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        distribution = SourceDistribution.of(Path.cwd(), name, package)
        #: The URI as plain text, for what needs it while the program runs.
        self.reference = f"{foundation.staging}/{_FOLDER}/{name}-{distribution.tag}.tar.gz"
        props = {
            "uri": self.reference,
            "parent": foundation.parent,
            "package": dict(package),
            "files": short_digests(distribution.digests),
        }
        ours = pulumi.ResourceOptions(depends_on=[*foundation.for_jobs])
        super().__init__(PythonPackageProvider(), name, props, pulumi.ResourceOptions.merge(ours, opts))


def _upload(props: dict[str, Any]) -> None:
    uri = props["uri"]
    store = object_store.store_of(props["parent"])
    if store.has(uri):
        return
    name = _id(uri).rpartition("/")[2]
    distribution = SourceDistribution.of(Path.cwd(), name, cast(shapes.PythonPackage, props["package"]))
    if not uri.endswith(f"-{distribution.tag}.tar.gz"):
        raise UploadFailed(f"{uri}: its files changed since the preview; run `pulumi up` again")
    store.put(uri, distribution.archive())
    print(f"{name}: uploaded {posixpath.basename(uri)}", flush=True)  # noqa: T201


def _id(uri: str) -> str:
    """The URI without its digest, which stays the same from edit to edit."""
    return uri.rpartition("-")[0]
