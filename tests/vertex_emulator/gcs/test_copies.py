"""Copy, rewrite, compose and move over HTTP, and what becomes of them when something goes wrong."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.vertex_emulator.gcs.served import ServedStorage
from vertex_emulator.gcs import objects
from vertex_emulator.gcs.copies import Call
from vertex_emulator.gcs.objects import check_preconditions

OBJECTS = "/storage/v1/b/bucket/o"
ONE = {"name": "y.txt"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("copies")
    for name in ("gcs", "uploads"):
        (root / name).mkdir()
    return root


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[ServedStorage]:
    with ServedStorage(root) as client:
        yield client


@pytest.fixture
def bucket(root: Path) -> Path:
    """The bucket's folder with two objects."""
    folder = root / "gcs/bucket"
    (folder / "a").mkdir(parents=True, exist_ok=True)
    (folder / "a/x.txt").write_text("of x")
    (folder / "y.txt").write_text("of y")
    return folder


def posted(client: ServedStorage, call: str, body: Any = None, **query: Any) -> Any:
    return client.ask("POST", f"{OBJECTS}/{call}", json=body or {}, params=query)


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("b%2Fc/compose", Call("bucket", "b/c", "compose", "bucket", "b/c")),
        ("x/copyTo/b/other/o/y%20z", Call("bucket", "x", "copyTo", "other", "y z")),
        ("x%2FcopyTo%2Fb%2Fc%2Fo%2Fd/moveTo/o/y", Call("bucket", "x/copyTo/b/c/o/d", "moveTo", "bucket", "y")),
        ("x/rewriteTo/b/other/o/y%2Fcompose", Call("bucket", "x", "rewriteTo", "other", "y/compose")),
        ("a/b/compose", Call("bucket", "a/b", "compose", "bucket", "a/b")),
        ("x", None),
        ("x/restore", None),
        ("x/rewriteTo/b/other", None),
        ("compose", None),
    ],
)
def test_names_with_slashes_do_not_confuse_calls(path: str, call: Call | None) -> None:
    assert Call.parse(f"{OBJECTS}/{path}") == call


def test_copies_share_no_changes(client: ServedStorage, bucket: Path) -> None:
    reply = posted(client, "a%2Fx.txt/rewriteTo/b/other/o/deep%2Fcopy").json()
    assert (reply["done"], reply["objectSize"], reply["resource"]["contentType"]) == (True, "4", "text/plain")
    (bucket / "a/x.txt").write_text("changed in place")
    assert (bucket.parent / "other/deep/copy").read_text() == "of x"


@pytest.mark.parametrize(
    ("call", "query"),
    [
        ("y.txt/copyTo/b/bucket/o/a%2Fx.txt", {"ifGenerationMatch": "0"}),
        ("y.txt/rewriteTo/b/bucket/o/new", {"ifSourceGenerationMatch": "5"}),
        ("y.txt/moveTo/o/new", {"ifSourceMetagenerationMatch": "2"}),
        ("y.txt/moveTo/o/a%2Fx.txt", {"ifGenerationMatch": "0"}),
        ("new/compose", {"ifGenerationMatch": "5"}),
    ],
)
def test_a_failed_precondition_changes_nothing(client: ServedStorage, bucket: Path, call: str, query: Any) -> None:
    reply = posted(client, call, {"sourceObjects": [ONE]} if "compose" in call else None, **query)
    assert (reply.status_code, next(iter(query)) in reply.text) == (412, True)
    assert ((bucket / "a/x.txt").read_text(), (bucket / "y.txt").read_text()) == ("of x", "of y")
    assert not (bucket / "new").exists()


@pytest.mark.parametrize(
    ("call", "body", "query", "text"),
    [
        ("y.txt/rewriteTo/b/bucket/o/z", {"contentEncoding": "gzip"}, {}, "contentEncoding: is not stored"),
        ("y.txt/rewriteTo/b/bucket/o/z", {}, {"destinationKmsKeyName": "k"}, "destinationKmsKeyName"),
        ("y.txt/rewriteTo/b/bucket/o/z", {}, {"rewriteToken": "t"}, "rewriteToken"),
        ("y.txt/copyTo/b/bucket/o/..%2Fz", {}, {}, "not a valid folder name"),
        ("..%2Fuploads/copyTo/b/bucket/o/z", {}, {}, "not a valid folder name"),
        ("y.txt/moveTo/o/y.txt", {}, {}, "A move has two names"),
        ("a%2F/moveTo/o/b%2F", {}, {}, "objects, not of folders"),
        ("z/compose", {}, {}, "sourceObjects: must be a list of 1 to 32"),
        ("z/compose", {"sourceObjects": [ONE] * 33}, {}, "sourceObjects: must be a list of 1 to 32"),
        ("z/compose", {"sourceObjects": ["y.txt"]}, {}, r"sourceObjects[0]: must be an object with the name"),
        (
            "z/compose",
            {"sourceObjects": [ONE], "deleteSourceObjects": True},
            {},
            "deleteSourceObjects: is",
        ),
        ("z/compose", {"sourceObjects": [ONE], "destination": "z"}, {}, "destination: must be an object"),
        (
            "z/compose",
            {"sourceObjects": [ONE | {"objectPreconditions": {"x": 1}}]},
            {},
            "sourceObjects[0].objectPreconditions",
        ),
    ],
)
def test_meaningless_calls_are_refused_by_field(
    client: ServedStorage, bucket: Path, call: str, body: Any, query: Any, text: str
) -> None:
    reply = posted(client, call, body, **query)
    assert (reply.status_code, text in reply.text) == (400, True), reply.text
    assert not (bucket / "z").exists()


@pytest.mark.parametrize("call", ["none/copyTo/b/bucket/o/z", "none/moveTo/o/z", "a/rewriteTo/b/bucket/o/z"])
def test_what_is_no_object_has_no_copy(client: ServedStorage, bucket: Path, call: str) -> None:
    reply = posted(client, call)
    assert (reply.status_code, "No such object: bucket/" in reply.text) == (404, True)


@pytest.mark.parametrize("method", ["copyTo/b/bucket/o/z", "rewriteTo/b/bucket/o/z", "moveTo/o/z"])
def test_links_and_pipes_are_never_copied(client: ServedStorage, bucket: Path, root: Path, method: str) -> None:
    secret = root / "secret"
    secret.write_text("of the host")
    for name, make in (("link", lambda at: at.symlink_to(secret)), ("pipe", os.mkfifo)):
        (bucket / name).unlink(missing_ok=True)
        make(bucket / name)
    (bucket / "linked").unlink(missing_ok=True)
    (bucket / "linked").symlink_to(root)
    assert posted(client, f"link/{method}").status_code == 400
    assert posted(client, f"pipe/{method}").status_code == 404
    assert posted(client, f"linked%2Fsecret/{method}").status_code == 400
    target = method.replace("/o/z", "/o/linked%2Fsecret")
    assert posted(client, f"y.txt/{target}").status_code == 400
    assert posted(client, "z/compose", {"sourceObjects": [ONE, {"name": "link"}]}).status_code == 400
    assert secret.read_text() == "of the host"
    assert not (bucket / "z").exists()
    assert [path.name for path in (root / "uploads").glob("*.partial")] == []


def test_files_beyond_the_disk_are_refused(client: ServedStorage, bucket: Path) -> None:
    (bucket / "endless").touch()
    os.truncate(bucket / "endless", 1 << 43)
    reply = posted(client, "endless/rewriteTo/b/bucket/o/z")
    (bucket / "endless").unlink()
    assert (reply.status_code, "bytes left, and this needs 8796093022208" in reply.text) == (413, True)


def test_one_of_many_conditional_writers_wins(
    client: ServedStorage, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_slowly(*arguments: Any) -> None:
        check_preconditions(*arguments)
        time.sleep(0.005)  # so that others, if they may, do the same before this one writes

    monkeypatch.setattr(objects, "check_preconditions", check_slowly)
    url = "/upload/storage/v1/b/bucket/o?uploadType=media&name=lock"
    generation = client.ask("POST", url, data=b"0").json()["generation"]

    def write(number: int) -> int:
        return client.ask("POST", f"{url}&ifGenerationMatch={generation}", data=str(number).encode()).status_code

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(write, range(24))) == [200] + [412] * 23


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{OBJECTS}/y.txt/restore"),
        ("GET", f"{OBJECTS}/y.txt/acl"),
        ("PATCH", f"{OBJECTS}/y.txt/acl/allUsers"),
        ("GET", f"{OBJECTS}/y.txt/iam"),
        ("PATCH", "/storage/v1/b/bucket"),
        ("GET", "/storage/v1/b/bucket/iam"),
        ("POST", "/storage/v1/b/bucket/o/bulkRestore"),
        ("POST", "/storage/v1/b/bucket/notificationConfigs"),
    ],
)
def test_other_methods_are_unimplemented_by_name(client: ServedStorage, bucket: Path, method: str, path: str) -> None:
    reply = client.ask(method, path, json={})
    assert (reply.status_code, f"no {method} {path}" in reply.text) == (501, True)
