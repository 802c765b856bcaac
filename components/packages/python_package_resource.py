"""PythonPackage: a source distribution whose name has the digest of its content, uploaded if it is new."""

import io
import posixpath
from pathlib import Path
from typing import Any

import pulumi
from pulumi import dynamic

from ..errors import UploadFailed
from ..files.cached_digests import get_short_digests_or_none_if_many
from ..runtime.foundation import Foundation
from ..runtime.provider import Provider
from ..runtime.resource import DynamicResource
from ..runtime.storage import store
from ..schema import shapes
from ..schema.formats import PACKAGE_FOLDER
from .source_distribution import SourceDistribution


class PythonPackageProvider(Provider):
    """Uploads packages. Deletes none, because a waiting job may still need them."""

    input_names = ("uri", "parent", "package", "files")

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        _upload(props)
        return dynamic.CreateResult(_get_uri_without_digest(props["uri"]), dict(props))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        if not store(props["parent"]).exists(props["uri"]):
            return dynamic.ReadResult(None, {})
        return self.read_result(id_, props)


class PythonPackage(DynamicResource, module="vertex", name="PythonPackage"):
    """A source distribution in the staging folder, for a job's `packageUris`.

    `package` has either `path` (a folder with a pyproject.toml or setup.py) or `script` (a Python file) with
    `requirements`; both are relative to the program's folder. `uri` is known in a preview:
    `<staging>/packages/<name>-<digest of its content>.tar.gz`.
    """

    output_names = ("uri",)
    uri: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        package: shapes.PythonPackage,
        *,
        foundation: Foundation,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        distribution = SourceDistribution.from_declaration(Path.cwd(), name, package)
        #: The URI as plain text, for code that needs it while the program runs.
        self.reference = f"{foundation.staging_folder_uri}/{PACKAGE_FOLDER}/{name}-{distribution.tag}.tar.gz"
        props = {
            "uri": self.reference,
            "parent": foundation.full_location_name,
            "package": dict(package),
            "files": get_short_digests_or_none_if_many(distribution.entries.digests_by_path),
        }
        defaults = pulumi.ResourceOptions(depends_on=[*foundation.job_dependencies])
        super().__init__(PythonPackageProvider(), name, props, pulumi.ResourceOptions.merge(defaults, opts))


def _upload(props: dict[str, Any]) -> None:
    """Build a package, and upload it unless its URI has it. Raises UploadFailed if its files changed since the preview.

    What the URI has is compared: a job names its packages without a generation (PythonPackageSpec of the discovery
    document aiplatform v1), so what is there is what it runs.
    """
    uri = props["uri"]
    name = _get_uri_without_digest(uri).rpartition("/")[2]
    distribution = SourceDistribution.from_declaration(Path.cwd(), name, props["package"])
    if not uri.endswith(f"-{distribution.tag}.tar.gz"):
        raise UploadFailed(f"{uri}: its files changed since the preview; run `pulumi up` again")
    content = io.BytesIO(distribution.build_archive_bytes())
    if store(props["parent"]).put(uri, content).is_new:
        print(f"{name}: uploaded {posixpath.basename(uri)}", flush=True)  # noqa: T201


def _get_uri_without_digest(uri: str) -> str:
    """Return a URI without its digest, which stays the same from edit to edit."""
    return uri.rpartition("-")[0]
