"""What data is now: the objects of a bucket, the files of a folder of the project, or the rows of a BigQuery table.

Nothing is downloaded: a bucket's own checksums tell contents apart, and what BigQuery says of its last change.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vertex_api import credentials
from vertex_api.errors import VertexError
from vertex_api.validation.formats import Violation

from ..errors import DataUnreadable, UploadFailed
from ..files import digests
from ..own import Own
from ..runtime import storage
from ..runtime.target import LOCAL_PREFIX
from ..schema.source import explain_outside
from .lock import Part, Snapshot

BUCKET, TABLE = "gs://", "bq://"
BIGQUERY_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_BIGQUERY"
"""gcloud's own variable for another address of BigQuery's API."""
_WILDCARD = re.compile(r"\*\*|\*|\?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PATTERNS = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def uri_violations(root: Path, uri: str, is_granted: bool = False) -> Iterator[Violation]:
    """Find why a path in place of a URI cannot be that of files of the project, which no role is granted on."""
    if not uri.startswith((BUCKET, TABLE)):
        if is_granted:
            yield ("grant",), "has no effect on files of the project, which an image or a package has in it; remove it"
        folder, _ = _split(uri)
        if message := explain_outside(root, folder or "."):
            yield ("uri",), message


def _split(path: str) -> tuple[str, "re.Pattern[str]"]:
    """Return the folder that a path with wildcards is in, and the pattern of what it names in that folder.

    `*` and `?` match within a folder, and `**` across folders (Cloud Storage, "Object names: Considerations when using
    wildcards"). A path that ends with a slash names everything below it.
    """
    whole = f"{path}**" if path.endswith("/") or not path else path
    fixed = _WILDCARD.split(whole, maxsplit=1)[0]
    folder = fixed[: fixed.rfind("/") + 1]
    rest, pattern, end = whole[len(folder) :], "", 0
    for found in _WILDCARD.finditer(rest):
        pattern += re.escape(rest[end : found.start()]) + _PATTERNS[found[0]]
        end = found.end()
    return folder, re.compile(pattern + re.escape(rest[end:]), re.DOTALL)


def take(uri: str, root: Path, full_location_name: str) -> Snapshot:
    """Return what data is now for a target such as `//local/projects/P/locations/R`.

    `root` is the project's folder. Raises DataUnreadable, also if there is nothing.
    """
    try:
        if uri.startswith(TABLE):
            return _table(uri, full_location_name)
        if uri.startswith(BUCKET):
            snapshot = Snapshot.of(uri, "objects", _objects(uri, full_location_name))
        else:
            snapshot = Snapshot.of(uri, "files", _files(uri, root))
    except (UploadFailed, VertexError) as error:
        raise DataUnreadable(str(error)) from error
    except OSError as error:
        raise DataUnreadable(f"{error.filename}: cannot be read ({error.strerror}); make it readable") from error
    if not snapshot.count:
        raise DataUnreadable(f"{uri}: there is nothing under this URI; correct it, or write the data first")
    return snapshot


def selection(uri: str) -> tuple[str, str, str, "re.Pattern[str]"]:
    """Return what a `gs://` URI selects: a bucket, a prefix of all names, a folder, and the pattern of names in it."""
    bucket, _, path = uri.removeprefix(BUCKET).partition("/")
    folder, pattern = _split(path)
    prefix = path if not _WILDCARD.search(path) else _WILDCARD.split(path, maxsplit=1)[0]
    return bucket, prefix, folder, pattern


def _objects(uri: str, full_location_name: str) -> Iterator[Part]:
    bucket, prefix, folder, pattern = selection(uri)
    for listed in storage.listing(full_location_name, bucket, prefix):
        name = listed.name[len(folder) :]
        # A name that ends with a slash is no file: consoles make such an object for a folder.
        if pattern.fullmatch(name) and not name.endswith("/") and name:
            fields = {"crc32c": listed.crc32c, "md5": listed.md5, "generation": listed.generation}
            yield Part(name, listed.size, {key: value for key, value in fields.items() if value})


def _files(path: str, root: Path) -> Iterator[Part]:
    if (root / path).is_dir():
        path = f"{path.rstrip('/')}/"
    folder, pattern = _split(path)
    top = root / folder
    names, own = [], Own(top)
    for place, folders, found in os.walk(top):
        inside = f"{os.path.relpath(place, top)}/".removeprefix("./")
        folders[:] = sorted(name for name in folders if not own.has(inside, name))
        names += [inside + name for name in found if not own.has(inside, name)]
    matching = sorted(name for name in names if pattern.fullmatch(name) and (top / name).is_file())
    if foreign := next((name for name in matching if _SURROGATE.search(name)), None):
        raise DataUnreadable(f"{path}: the name {foreign!a} is not UTF-8; rename the file")
    for name, digest in digests(top, matching).items():
        yield Part(name, (top / name).lstat().st_size, {"sha256": digest})


def _table(uri: str, full_location_name: str) -> Snapshot:
    """Return that of a BigQuery table (REST reference, `tables.get`)."""
    from google.auth.credentials import AnonymousCredentials
    from google.auth.transport.requests import AuthorizedSession

    from vertex_api import transport
    from vertex_api.answers import read_json, translate_errors

    base = os.environ.get(BIGQUERY_VARIABLE, "").rstrip("/")
    if full_location_name.startswith(LOCAL_PREFIX) and not base:
        raise DataUnreadable(f"{uri}: this machine has no BigQuery; lock the data of a stack with target gcp")
    base = base or "https://bigquery.googleapis.com"
    project, dataset, table = uri.removeprefix(TABLE).split(".")
    is_local = base.startswith("http://")
    address = f"{base}/bigquery/v2/projects/{project}/datasets/{dataset}/tables/{table}"
    with translate_errors():
        session: Any = AuthorizedSession(AnonymousCredentials() if is_local else credentials.load())
        session.trust_env = not is_local
        answer = read_json(
            transport.mount(session).get(address, params={"fields": "numRows,numBytes,lastModifiedTime,type"})
        )
    try:
        rows, size, modified = (int(answer[key]) for key in ("numRows", "numBytes", "lastModifiedTime"))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        kind = " ".join(str(answer.get("type", "something else")).lower().split())[:60]
        raise DataUnreadable(f"{uri}: has no rows of its own ({kind}); lock the table that it reads") from error
    return Snapshot.of(uri, "rows", [Part(table, size, {"modified": str(modified)})], rows)
