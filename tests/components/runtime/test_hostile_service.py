"""What a service between this machine and Google can make the clients of the module do: one clear line, and no more."""

import io
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from vertex_training.data import listing
from vertex_training.errors import ComponentError
from vertex_training.images import registry
from vertex_training.images.build_client import BuildClient
from vertex_training.images.registry import GoogleRegistry
from vertex_training.parity import command, side
from vertex_training.parity.side import ParityFailed, Run
from vertex_training.runtime import emulator, storage
from vertex_training.runtime.storage import CloudStorage

import vertex_api.emulator
from tests.cases import case
from tests.standins import hostile
from tests.standins.hostile import Behaviour, Hostile
from tests.vertex_api.clock import Clock
from tests.vertex_api.jobs import job_of
from vertex_api import answers, retry, transport
from vertex_api.client import Client, Endpoint
from vertex_api.errors import VertexError
from vertex_api.names import CUSTOM_JOB, ResourceName, location_name
from vertex_api.retry import Caller

# An answer that is given up is left to a thread, whose socket is closed whenever that ends.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
CANARY = "ya29.canary-5b1d"
PARENT = location_name("p", "us-central1")
NAME = ResourceName.parse(f"{PARENT}/customJobs/7")
IMAGE = "us-docker.pkg.dev/p/training/digits:0123456789abcdef"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Pauses before retries pass at once."""
    clock = Clock()
    monkeypatch.setattr(retry, "time", clock)
    monkeypatch.setattr("google.api_core.retry.retry_unary.time", clock)
    monkeypatch.setattr("google.api_core.retry.retry_base.time", clock, raising=False)
    return clock


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with hostile.serve() as server:
        yield server


@pytest.fixture
def calls(server: Hostile, monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], object]]:
    """The calls of all clients of the module, each with the canary as its token where it has one."""
    from google.auth import credentials as auth
    from google.oauth2.credentials import Credentials

    monkeypatch.setattr(auth, "AnonymousCredentials", lambda: Credentials(CANARY))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    monkeypatch.setattr("google.auth.default", lambda **_: (Credentials(CANARY), "p"))
    credentials = {"username": "oauth2accesstoken", "password": CANARY}
    monkeypatch.setattr(registry, "google_login", lambda _: credentials)
    endpoint = Endpoint.for_server(server.url, CANARY)
    monkeypatch.setattr(emulator, "start", lambda: endpoint)
    client = Client(endpoint)
    builds = BuildClient(server.url, server.url, Caller())
    nothing: dict[str, Any] = {"check_before": lambda: None, "find_created": lambda: None}
    return {
        "create": lambda: client.create(CUSTOM_JOB, PARENT, job_of(CUSTOM_JOB), **nothing),
        "get": lambda: client.require(NAME),
        "list": lambda: client.find(CUSTOM_JOB, PARENT, ""),
        "delete": lambda: client.delete(NAME),
        "list executions": lambda: client.list_executions(f"{PARENT}/workflows/w"),
        "log": lambda: client.log_lines(NAME, 10),
        "start build": lambda: builds.create(PARENT, {}, **nothing),
        "get build": lambda: builds.get(f"{PARENT}/builds/7"),
        "list builds": lambda: builds.list(PARENT, "t"),
        "build log": lambda: builds.log_entries("p", "7", 10),
        "has object": lambda: CloudStorage().exists("gs://bucket/object"),
        "upload": lambda: CloudStorage().put("gs://bucket/object", io.BytesIO(b"x" * 100)),
        "read": lambda: _read("gs://bucket/object"),
        "list objects": lambda: _list("gs://bucket/folder/"),
        "emulator": partial(emulator.request, "GET", "schedules", None, "nightly"),
    }


NAMES = [
    "create",
    "get",
    "list",
    "delete",
    "list executions",
    "log",
    "start build",
    "get build",
    "list builds",
    "build log",
]
NAMES += ["has object", "upload", "read", "list objects", "emulator"]


def _read(uri: str) -> object:
    with CloudStorage().reader() as read:
        return read.read(uri, 100)


def _list(uri: str) -> object:
    with CloudStorage().reader() as read:
        return read.objects(uri, 100)


def fail(call: Callable[[], object]) -> str:
    """Make a call that must fail, with one line that says why."""
    with pytest.raises((VertexError, ComponentError)) as failure:
        call()
    message = str(failure.value)
    assert len(message.splitlines()) == 1 and len(message) < 1000 and message.isprintable() and CANARY not in message
    return message


@pytest.mark.parametrize("name", NAMES)
def test_redirects_take_no_token_elsewhere(name: str, server: Hostile, calls: dict[str, Callable[[], object]]) -> None:
    with hostile.serve() as other:
        for status in ("301 Moved", "302 Found", "303 See Other", "307 T", "308 P"):
            with case(status):
                server.behaviour = hostile.redirecting(f"{other.url}/v1/steal", status)
                fail(calls[name])
                assert other.asked == []


@pytest.mark.parametrize("name", NAMES)
def test_redirects_to_other_schemes_are_refused(
    name: str, server: Hostile, calls: dict[str, Callable[[], object]]
) -> None:
    for target in ("file:///etc/passwd", "ftp://x/", "http://169.254.169.254/", "//[", "\x1b[2J"):
        with case(target):
            server.behaviour = hostile.redirecting(target)
            fail(calls[name])


@pytest.fixture(scope="module")
def bomb() -> Behaviour:
    return hostile.gzip_bomb(64)


@pytest.mark.parametrize("is_bomb", [False, True], ids=["endless", "bomb"])
@pytest.mark.parametrize("name", NAMES)
def test_bodies_fill_no_memory(
    name: str,
    is_bomb: bool,
    bomb: Behaviour,
    server: Hostile,
    calls: dict[str, Callable[[], object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (transport, vertex_api.emulator):
        monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 1 << 20)
    server.behaviour = bomb if is_bomb else hostile.endless
    # Not by tracemalloc: a thread of an answer that was given up may still allocate when it stops (docs/gotchas.md).
    Path("/proc/self/clear_refs").write_text("5")  # man 5 proc: the peak begins anew
    before = memory("VmRSS")
    fail(calls[name])
    assert memory("VmHWM") - before < 48 << 20


def memory(field: str) -> int:
    """Return the bytes of a field of this process's status."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith(f"{field}:"))) << 10


@pytest.mark.parametrize("behaviour", [hostile.dripping, hostile.dripping_head, hostile.continuing])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "emulator"])  # which is of this machine
def test_answers_without_an_end_are_given_up(
    name: str,
    behaviour: Behaviour,
    server: Hostile,
    calls: dict[str, Callable[[], object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "MAX_SECONDS", 0.1)
    monkeypatch.setattr(storage, "MAX_UPLOAD_SECONDS", 0.1)
    monkeypatch.setattr(storage, "MAX_READ_SECONDS", 0.1)
    server.behaviour = behaviour
    fail(calls[name])


WRONG = {
    "HTML": hostile.answering(b"<html>\n<b>Welcome</b>\x1b[2J</html>"),
    "a list": hostile.as_json([1]),
    "a text": hostile.as_json("yes"),
    "null": hostile.as_json(None),
    "a number of 5,000 digits": hostile.answering(b"9" * 5000),
    "NaN": hostile.answering(b"NaN"),
    "no UTF-8": hostile.answering(b'{"name": "\xff\xfe"}'),
    "nested without end": hostile.answering(b'{"a":' * 100_000),
    "lists in lists": hostile.answering(b"[" * 100_000),
    "a null name": hostile.as_json({"name": None, "id": None, "status": None}),
    "a number as name": hostile.as_json({"name": 7, "id": [], "status": 7}),
    "other fields' types": hostile.as_json(
        {
            "customJobs": 7,
            "entries": 7,
            "builds": 7,
            "executions": 7,
            "md5Hash": 7,
            "metadata": 7,
            "done": "x",
            "name": {},
            "items": 7,
        }
    ),
    "lists of other things": hostile.as_json(
        {"customJobs": [7], "entries": [7], "builds": [7], "executions": [7], "metadata": {"build": []}, "name": []}
    ),
    "no HTTP": lambda send, _: send(b"\x1b[2J\n" * 100),
}
LISTS = ("list", "list objects", "list executions", "list builds", "log", "build log")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("has object", "emulator")])
def test_answers_of_wrong_types_are_one_line(
    name: str, server: Hostile, calls: dict[str, Callable[[], object]]
) -> None:
    for wrong, behaviour in WRONG.items():
        server.behaviour = behaviour
        with case(wrong):
            if name not in LISTS:
                fail(calls[name])
                continue
            try:  # an object without the field is an empty list, and entries of a log that are no objects are left out
                assert calls[name]() == []
            except (VertexError, ComponentError):
                fail(calls[name])


ERRORS = {
    "an act on the terminal": {"error": {"code": 400, "message": "\x1b]0;owned\x07\n\r::error::\n| ` <img>\u202e"}},
    "ten megabytes": {"error": {"code": 400, "message": "x" * 10_000_000}},
    "a list": [{"error": {"code": 400, "message": "x"}}],
    "an error that is a text": {"error": "no"},
    "an error that is null": {"error": None},
    "a message that is a list": {"error": {"message": ["\x1b"], "details": 7, "errors": 7}},
    "details that are texts": {"error": {"message": "m", "details": ["x", {"@type": 7}], "status": 7}},
}


ANSWERED = [(error, "400 B") for error in ERRORS]
ANSWERED += [("an act on the terminal", status) for status in ("403 \x1b[2J", "404 N", "429 T", "500 I")]
as_error = cache(lambda error, status: hostile.as_json(ERRORS[error], status))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("has object", "emulator")])
def test_errors_act_on_no_terminal(name: str, server: Hostile, calls: dict[str, Callable[[], object]]) -> None:
    for error, status in ANSWERED:
        server.behaviour = as_error(error, status)
        with case((error, status)):
            if (name, status) == ("list executions", "404 N"):
                assert calls[name]() == []  # of a workflow that does not exist yet
            elif name in ("read", "list objects") and status == "404 N":
                assert not calls[name]()  # what there is not
            else:
                fail(calls[name])


def test_pages_without_an_end_are_given_up(
    server: Hostile, calls: dict[str, Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_PAGES", 5)
    server.behaviour = hostile.as_json({"customJobs": [], "nextPageToken": "more"})
    assert fail(calls["list"]).startswith("the list does not end: it has 5 pages and 0 MiB so far")
    before = len(server.asked)
    server.behaviour = hostile.as_json({"entries": [], "nextPageToken": "more"})
    assert calls["log"]() == [] and len(server.asked) == before + 20


def test_large_pages_are_given_up(
    server: Hostile, calls: dict[str, Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_LIST_BYTES", 10_000)
    job = {"name": str(NAME), "displayName": "x" * 3_000}
    server.behaviour = hostile.as_json({"customJobs": [job], "nextPageToken": "more"})
    assert fail(calls["list"]).startswith("the list does not end: it has 3 pages")


@pytest.mark.parametrize(
    "named",
    [
        f"{location_name('p', 'europe-west4')}/customJobs/7",
        f"{location_name('evil', 'us-central1')}/customJobs/7",
        f"{PARENT}/hyperparameterTuningJobs/7",
        f"{PARENT}/customJobs/7:cancel",
        f"{PARENT}/customJobs/..",
        f"//evil.example/{PARENT}/customJobs/7",
        f"{PARENT}/customJobs/7?alt=media",
        f"{PARENT}/customJobs/\x1b[2J",
        "",
    ],
)
@pytest.mark.parametrize("name", ["create", "get", "list"])
def test_jobs_elsewhere_are_not_taken(
    name: str, named: str, server: Hostile, calls: dict[str, Callable[[], object]]
) -> None:
    job = {"name": named, "state": "JOB_STATE_PENDING"}
    server.behaviour = hostile.as_json({"customJobs": [job]} if name == "list" else job)
    assert fail(calls[name]).startswith("what answers is not the API: it names ")


def test_a_reader_blames_no_service_for_mistakes(server: Hostile, calls: dict[str, Callable[[], object]]) -> None:
    with pytest.raises(TypeError), CloudStorage().reader() as read:
        read.objects("gs://bucket/folder/", 100)
        len(7)  # type: ignore[arg-type]
    with pytest.raises(AttributeError), CloudStorage().reader() as read:
        read.objects(7, 100)  # type: ignore[arg-type]


@pytest.mark.parametrize(("project", "id"), [("p", "8"), ("12", "8"), ("evil", "7")])
def test_no_other_job_is_taken_for_the_asked(
    project: str, id: str, server: Hostile, calls: dict[str, Callable[[], object]]
) -> None:
    server.behaviour = hostile.as_json({"name": f"{location_name(project, 'us-central1')}/customJobs/{id}"})
    assert fail(calls["get"]).startswith("what answers is not the API: it names ")


def test_a_project_may_be_its_number(server: Hostile, calls: dict[str, Callable[[], object]]) -> None:
    name = f"{location_name('12', 'us-central1')}/customJobs/7"
    server.behaviour = hostile.as_json({"name": name})
    assert calls["get"]() == {"name": name}


def stored(name: Any, **fields: Any) -> dict[str, Any]:
    return {"name": name, "size": "1", "generation": "7", "crc32c": "AAAAAA==", **fields}


LISTS_WITHOUT_END = {
    "the same page": {"items": [stored("a")], "nextPageToken": "more"},
    "empty pages": {"nextPageToken": "more"},
    "an order of its own": {"items": [stored("b"), stored("a")]},
    "a name twice": {"items": [stored("a"), stored("a")]},
    "names that are numbers": {"items": [stored(7)]},
    "a size of a word": {"items": [stored("a", size="much")]},
    "a size that is not finite": {"items": [stored("a", size=float("inf"))]},
    "no generation": {"items": [stored("a", generation=None)]},
    "no checksum": {"items": [stored("a", crc32c=None)]},
    "a checksum that is a list": {"items": [stored("a", crc32c=[])]},
    "a token that is a list": {"items": [7], "nextPageToken": [7]},
    "objects that are texts": {"items": ["a"]},
}


@pytest.mark.parametrize("answer", LISTS_WITHOUT_END)
def test_data_of_a_false_list_is_not_locked(
    answer: str, server: Hostile, calls: dict[str, Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_MAX_EMPTY_PAGES", 3)
    server.behaviour = hostile.as_json(LISTS_WITHOUT_END[answer])
    fail(lambda: listing.take("gs://bucket/", Path(), f"//cloud/{PARENT}"))
    assert len(server.asked) < 10


TABLES = {
    "a redirect": hostile.redirecting("http://169.254.169.254/"),
    "a bomb": hostile.gzip_bomb(64),
    "words as numbers": hostile.as_json({"numRows": "many", "numBytes": "1", "lastModifiedTime": "1"}),
    "NaN": hostile.as_json({"numRows": float("nan"), "numBytes": 1, "lastModifiedTime": 1}),
    "infinite rows": hostile.as_json({"numRows": float("inf"), "numBytes": 1, "lastModifiedTime": 1}),
    "digits without end": hostile.as_json({"numRows": "9" * 5000, "numBytes": "1", "lastModifiedTime": "1"}),
    "a type that acts": hostile.as_json({"type": "\x1b[2J\n" * 1000}),
    "a list": hostile.as_json([]),
    "HTML": hostile.answering(b"<html>"),
    "an error that acts": hostile.as_json({"error": {"code": 403, "message": "\x1b[2J\n" * 50}}, "403 F"),
}


@pytest.mark.parametrize("answer", TABLES)
def test_a_false_table_is_not_locked(
    answer: str, server: Hostile, calls: dict[str, Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 1 << 20)
    monkeypatch.setenv(listing.BIGQUERY_VARIABLE, server.url)
    server.behaviour = TABLES[answer]
    fail(lambda: listing.take("bq://p.d.t", Path(), f"//cloud/{PARENT}"))


OTHERS = f"{location_name('other', 'us-central1')}/customJobs/7"
SIDES = {
    "another project's job": hostile.as_json({"customJobs": [{"name": OTHERS}]}),
    "another region's job": hostile.as_json({"customJobs": [{"name": OTHERS.replace("central1", "east1")}]}),
    "a path that leads up": hostile.as_json({"customJobs": [{"name": f"{PARENT}/customJobs/../../x"}]}),
    "another host": hostile.as_json({"customJobs": [{"name": f"@evil.example/{PARENT}/customJobs/7"}]}),
    "no names": hostile.as_json({"customJobs": [{}, 7, None, {"name": 7}], "items": [{}, 7, {"name": None}]}),
    "numbers for lists": hostile.as_json({"customJobs": 7, "models": "x", "items": 7}),
    "pages without end": hostile.as_json({"nextPageToken": "more"}),
    "objects without end": hostile.as_json({"items": [{"name": "a"}]}),
    "a list": hostile.as_json([]),
    "lists in lists": hostile.answering(b"[" * 100_000),
    "a redirect": hostile.redirecting("http://169.254.169.254/"),
    "a bomb": hostile.gzip_bomb(64),
    "an error that is a text": hostile.as_json({"error": "\x1b[2J"}, "400 B"),
    "an error that acts": hostile.as_json({"error": {"message": "\x1b]0;owned\x07\n" * 1000}}, "400 B"),
}


@pytest.mark.parametrize("answer", SIDES)
def test_parity_removes_nothing_of_others(answer: str, server: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side, "_MAX_PAGES", 3)
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 1 << 20)
    server.behaviour = SIDES[answer]
    run = Run("parity-1", "p", "us-central1", server.url, "bucket", False, "/nowhere")
    try:
        command._service(run).clean()
    except ParityFailed as error:
        assert str(error).isprintable() and len(str(error)) < 1000
    methods = [asked.split(" ", 2)[:2] for asked in server.asked]
    assert all(method == "GET" or path.startswith("/storage/v1/b/bucket/o/") for method, path in methods)
    assert len(methods) < 20


def test_an_operation_elsewhere_is_not_followed(server: Hostile, calls: dict[str, Callable[[], object]]) -> None:
    server.behaviour = hostile.as_json({"name": "//evil.example/v1/operations/1"})
    fail(calls["delete"])


@pytest.mark.parametrize("digest", ["sha256:" + "0" * 63, "latest", "sha256:\x1b[2J", "../x"])
def test_a_digest_is_a_digest(
    digest: str, server: Hostile, calls: dict[str, Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "SCHEME", "http")
    server.behaviour = hostile.answering(b"", headers={"Docker-Content-Digest": digest})
    fail(lambda: GoogleRegistry().digest(f"{server.url.removeprefix('http://')}/p/digits:1"))


@pytest.mark.parametrize(
    "behaviour",
    [hostile.redirecting("http://169.254.169.254/"), hostile.dripping_head, hostile.answering(b"", "500 \x1b[2J")],
)
def test_a_registry_is_bounded_too(
    behaviour: Behaviour, server: Hostile, calls: dict[str, Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "SCHEME", "http")
    monkeypatch.setattr(transport, "MAX_SECONDS", 0.1)
    server.behaviour = behaviour
    fail(lambda: GoogleRegistry().digest(f"{server.url.removeprefix('http://')}/p/digits:1"))
