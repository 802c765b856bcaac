"""The client against a server on this machine: what it sends, what it gives back, and how it says what went wrong."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from google.protobuf import json_format

from tests.vertex_api.clock import Clock
from tests.vertex_api.futures import future_job
from tests.vertex_api.jobs import job_of
from vertex_api import client as client_module
from vertex_api import errors, retry
from vertex_api.answers import log_entries
from vertex_api.client import Client, Endpoint
from vertex_api.names import (
    CUSTOM_JOB,
    HYPERPARAMETER_TUNING_JOB,
    KINDS,
    TRAINING_PIPELINE,
    JobJson,
    Kind,
    ResourceName,
    location_name,
)

PARENT = location_name("p", "us-central1")
NAME = ResourceName.parse(f"{PARENT}/customJobs/7")
HELD = {"name": str(NAME), "displayName": "digits", "state": "JOB_STATE_PENDING"}


@dataclass
class Api:
    """A server that gives one answer, and keeps what it was asked: `(method, path, query, body)`."""

    port: int = 0
    status: int = 200
    answer: Any = field(default_factory=dict)
    pages: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, list[str]], Any]] = field(default_factory=list)
    first: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    """Status, body and headers of the first answers; `answer` is that of all later ones."""

    def replies(self, answer: Any, status: int = 200) -> None:
        self.answer, self.status = answer, status

    def fails(self, status: int, message: str) -> None:
        self.replies({"error": {"code": status, "message": message, "status": "X"}}, status)


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            api: Api = self.server.api  # type: ignore[attr-defined]
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            api.asked.append((self.command, url.path, query, json.loads(body) if body else None))
            answer = api.pages.get(query.get("pageToken", [""])[0], api.answer)
            status, answer, headers = api.first.pop(0) if api.first else (api.status, answer, {})
            text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = respond  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Pauses before retries pass at once."""
    clock = Clock()
    monkeypatch.setattr(retry, "time", clock)
    return clock


@pytest.fixture
def api(server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> Api:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server.api = Api(server.server_port)  # type: ignore[attr-defined]
    return server.api  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def client(api: Api) -> Client:
    return Client(Endpoint.for_server(f"http://127.0.0.1:{api.port}"))


def create(client: Client, kind: Kind, job: JobJson) -> JobJson:
    return client.create(kind, PARENT, job, check_before=lambda: None, find_created=lambda: None)


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_create_posts_the_job_as_proto_json(kind: Kind, api: Api, client: Client) -> None:
    job = job_of(kind) | {"labels": {"team_name": "vision"}}
    api.replies({**HELD, "name": f"{PARENT}/{kind.collection}/7"})
    created = create(client, kind, job)
    ((method, path, _, sent),) = api.asked
    assert (method, path) == ("POST", f"/v1/{PARENT}/{kind.collection}")
    pools = sent[kind.spec_field]["workerPoolSpecs"]
    # proto JSON writes an int64 as text; a pipeline's inputs are free JSON, in which every number is a float
    assert pools[0].pop("replicaCount") == (1.0 if kind == TRAINING_PIPELINE else "1")
    del job[kind.spec_field]["workerPoolSpecs"][0]["replicaCount"]
    assert (sent | {"studySpec": None}) == (job | {"studySpec": None})
    assert created["name"] == f"{PARENT}/{kind.collection}/7"


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_what_a_job_lifts_is_sent_and_read_as_written(kind: Kind, api: Api, client: Client) -> None:
    job, places = future_job(kind)
    name = f"{PARENT}/{kind.collection}/7"
    held = {**job, "name": name, "state": "JOB_STATE_PENDING"}
    api.replies(held)
    created = client.create(kind, PARENT, job, check_before=lambda: None, find_created=lambda: None, allowed=places)
    ((method, path, _, sent),) = api.asked
    assert (method, path, sent, created) == ("POST", f"/v1/{PARENT}/{kind.collection}", job, held)
    assert client.require(ResourceName.parse(name), is_whole=True) == held


def test_create_sends_all_study_parameters(api: Api, client: Client) -> None:
    api.replies({"name": f"{PARENT}/hyperparameterTuningJobs/7"})
    create(client, HYPERPARAMETER_TUNING_JOB, job_of(HYPERPARAMETER_TUNING_JOB))
    study = api.asked[0][3]["studySpec"]
    assert [metric["metricId"] for metric in study["metrics"]] == ["accuracy"]
    assert [parameter["parameterId"] for parameter in study["parameters"]] == ["rate", "units", "batch", "activation"]
    assert study["parameters"][0]["doubleValueSpec"] == {"minValue": 0.001, "maxValue": 0.1}
    assert study["parameters"][1]["integerValueSpec"] == {"minValue": "1", "maxValue": "64"}


def test_get_returns_json_with_enum_names(api: Api, client: Client) -> None:
    api.replies(HELD | {"state": 4, "createTime": "2026-01-31T12:00:00Z"})
    assert client.require(NAME) == HELD | {"state": "JOB_STATE_SUCCEEDED", "createTime": "2026-01-31T12:00:00Z"}
    assert [asked[:2] for asked in api.asked] == [("GET", f"/v1/{NAME}")]


def test_get_drops_unknown_fields(api: Api, client: Client) -> None:
    api.replies(HELD | {"inventedLater": {"a": 1}})
    assert client.require(NAME) == HELD


def test_list_sends_the_filter_and_reads_all_pages(api: Api, client: Client) -> None:
    other = HELD | {"name": f"{PARENT}/customJobs/8"}
    api.pages = {"": {"customJobs": [HELD], "nextPageToken": "more"}, "more": {"customJobs": [other]}}
    assert client.find(CUSTOM_JOB, PARENT, 'labels.team="vision"') == [HELD, other]
    assert [asked[1] for asked in api.asked] == [f"/v1/{PARENT}/customJobs"] * 2
    assert [asked[2]["filter"] for asked in api.asked] == [['labels.team="vision"']] * 2


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_every_kind_is_listed_cancelled_and_deleted(kind: Kind, api: Api, client: Client) -> None:
    name = ResourceName("p", "us-central1", kind, "7")
    assert client.find(kind, PARENT, "") == []
    client.cancel(name)
    api.replies(
        {
            "name": f"{PARENT}/operations/1",
            "done": True,
            "response": {"@type": "type.googleapis.com/google.protobuf.Empty"},
        }
    )
    client.delete(name)
    assert [asked[:2] for asked in api.asked] == [
        ("GET", f"/v1/{PARENT}/{kind.collection}"),
        ("POST", f"/v1/{name}:cancel"),
        ("DELETE", f"/v1/{name}"),
    ]


def test_a_failed_delete_operation_raises(api: Api, client: Client) -> None:
    refused = {"code": 9, "message": "the job is still running"}
    api.replies({"name": f"{PARENT}/operations/1", "done": True, "error": refused})
    with pytest.raises(errors.InvalidRequest, match="the job is still running"):
        client.delete(NAME)


def test_an_endless_delete_operation_raises(api: Api, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CALL_TIMEOUT", 0.2)
    api.replies({"name": f"{PARENT}/operations/1"})
    with pytest.raises(errors.Unavailable):
        client.delete(NAME)
    assert api.asked[-1][1].endswith(f"/{PARENT}/operations/1"), "it is asked for until then"


def test_container_log_lines_come_oldest_first(api: Api, client: Client) -> None:
    newest_first = [{"textPayload": "done"}, {"jsonPayload": {"message": "epoch 1"}}, {"jsonPayload": {"loss": 1}}]
    api.replies({"entries": newest_first})
    assert client.log_lines(NAME, 3) == ["{'loss': 1}", "epoch 1", "done"]
    ((method, path, _, sent),) = api.asked
    assert (method, path) == ("POST", "/v2/entries:list")
    assert (sent["resourceNames"], sent["orderBy"], sent["pageSize"]) == (["projects/p"], "timestamp desc", 3)
    assert 'resource.labels.job_id="7"' in sent["filter"]
    assert 'resource.labels.task_name!="service"' in sent["filter"]


@pytest.mark.parametrize(
    ("replica", "task"), [("workerpool1-0", '="workerpool1-0"'), ("workerpool1", '=~"^workerpool1-"')]
)
def test_log_lines_can_be_of_a_replica_or_pool(replica: str, task: str, api: Api, client: Client) -> None:
    client.log_lines(NAME, 3, replica)
    ((_, _, _, sent),) = api.asked
    assert sent["filter"].endswith(f"AND resource.labels.task_name{task}")
    assert "service" not in sent["filter"]


def test_log_lines_come_from_pages_that_end_early(api: Api, client: Client) -> None:
    pages = [{"nextPageToken": "a"}, {"entries": [{"textPayload": "done"}], "nextPageToken": "b"}]
    api.first = [(200, page, {}) for page in pages]
    api.replies({"entries": [{"textPayload": "epoch 2"}, {"textPayload": "epoch 1"}], "nextPageToken": "c"})
    assert client.log_lines(NAME, 2) == ["epoch 2", "done"]
    assert [sent.get("pageToken") for _, _, _, sent in api.asked] == [None, "a", "b"]


def test_a_silent_job_has_no_log_lines(api: Api, client: Client) -> None:
    assert client.log_lines(NAME, 3) == []


CALLS: dict[str, Callable[[Client], object]] = {
    "create": lambda client: create(client, CUSTOM_JOB, job_of(CUSTOM_JOB)),
    "get": lambda client: client.require(NAME),
    "list": lambda client: client.find(CUSTOM_JOB, PARENT, ""),
    "cancel": lambda client: client.cancel(NAME),
    "delete": lambda client: client.delete(NAME),
    "log_lines": lambda client: client.log_lines(NAME, 1),
}
ERRORS = {
    400: errors.InvalidRequest,
    401: errors.PermissionDenied,
    403: errors.PermissionDenied,
    404: errors.NotFound,
    409: errors.InvalidRequest,
    412: errors.InvalidRequest,
    429: errors.RateLimited,
    500: errors.Unavailable,
    503: errors.Unavailable,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", ERRORS)
def test_http_statuses_map_to_client_errors(status: int, call: str, api: Api, client: Client) -> None:
    api.fails(status, "no such luck")
    with pytest.raises(errors.VertexError) as failure:
        CALLS[call](client)
    assert type(failure.value) is ERRORS[status]


def too_many(message: str, *details: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return 429, {"error": error}, {}


RATE_LIMIT = "Quota exceeded for quota metric 'Resource management (CRUD) requests' and limit '… per minute per region'"
REASON = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"}
CAPACITY = "The following quota metrics exceed quota limits: "
L4, CPUS = (f"aiplatform.googleapis.com/custom_model_training_{name}" for name in ("nvidia_l4_gpus", "cpus"))


@pytest.mark.parametrize(
    "refusal",
    [too_many(RATE_LIMIT), too_many(RATE_LIMIT, REASON), too_many("Resource has been exhausted"), too_many("", REASON)],
)
def test_a_limit_a_minute_is_waited_for(refusal: Any, api: Api, client: Client, clock: Clock) -> None:
    api.first, api.answer = [refusal], HELD
    assert create(client, CUSTOM_JOB, job_of(CUSTOM_JOB))["name"] == str(NAME)
    assert len(clock.naps) == 1


@pytest.mark.parametrize("metrics", [[L4], [L4, CPUS]], ids=len)
def test_a_small_quota_names_its_metrics(metrics: list[str], api: Api, client: Client) -> None:
    api.first = [too_many(CAPACITY + ", ".join(metrics))]
    with pytest.raises(errors.QuotaExceeded) as failure:
        create(client, CUSTOM_JOB, job_of(CUSTOM_JOB))
    assert failure.value.metrics == tuple(metrics)
    assert len(api.asked) == 1


def test_a_create_that_was_repeated_keeps_the_first(api: Api, client: Client, clock: Clock) -> None:
    api.first, api.answer = [(503, {"error": {"code": 503, "message": "x"}}, {})], HELD
    looks: list[float] = []
    job = client.create(
        CUSTOM_JOB,
        PARENT,
        job_of(CUSTOM_JOB),
        check_before=lambda: None,
        find_created=lambda: looks.append(clock.now),
        keep_first=lambda created: {**created, "displayName": "kept"},
    )
    assert job["displayName"] == "kept"
    assert [method for method, *_ in api.asked] == ["POST", "POST"]
    assert [look - 1000 for look in looks] == [30, 60] and clock.now == 1090


def test_a_disabled_api_is_waited_for_by_lists(api: Api, client: Client, clock: Clock) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED", "domain": "x"}
    error = {"code": 403, "status": "PERMISSION_DENIED", "details": [info]}
    old, new = (
        {"error": error | {"message": text}}
        for text in (
            "Vertex AI API has not been used in project 1 before or it is disabled. Enable it by visiting …",
            "Permission denied",
        )
    )
    api.first, api.answer = [(403, old, {}), (403, new, {})], {"customJobs": [HELD]}
    assert client.find(CUSTOM_JOB, PARENT, "") == [HELD]
    assert len(clock.naps) == 2
    api.fails(403, "Permission 'aiplatform.customJobs.list' denied")
    with pytest.raises(errors.PermissionDenied):
        client.find(CUSTOM_JOB, PARENT, "")
    assert len(clock.naps) == 2, "other refusals are not waited for"


@pytest.mark.parametrize(
    "answer",
    [
        (503, {"error": {"code": 503, "message": "x"}}, {"Retry-After": "17"}),
        too_many(RATE_LIMIT, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}),
        (
            503,
            {"error": {"code": 503, "message": "x"}},
            {"Date": "Fri, 27 Nov 2026 23:59:50 GMT", "Retry-After": "Sat, 28 Nov 2026 00:00:07 GMT"},
        ),
    ],
    ids=["Retry-After", "RetryInfo", "a date"],
)
def test_the_service_may_say_when_to_try_again(answer: Any, api: Api, client: Client, clock: Clock) -> None:
    api.first, api.answer = [answer], HELD
    client.require(NAME)
    assert clock.naps == [17.0]


YEAR = str(366 * 24 * 3600)


@pytest.mark.parametrize(
    ("asked", "naps"),
    [
        (YEAR, 0),
        ("1e400", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 0),
        ("-5", 1),
        ("nan", 1),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 1),
        ("Fri, 99 Foo 2026", 1),
        ("soon", 1),
    ],
)
def test_no_service_makes_a_run_wait_without_end(
    asked: str, naps: int, api: Api, client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What asks for more than a run would wait ends it at once."""
    monkeypatch.setattr("random.random", lambda: 0.5)
    api.first, api.answer = [(503, {"error": {"code": 503, "message": "x"}}, {"Retry-After": asked})], HELD
    try:
        assert client.require(NAME) == HELD
    except errors.Unavailable:
        assert naps == 0
    assert clock.naps == [0.75] * naps


MISTAKES: dict[str, Callable[[], object]] = {
    "of types": lambda: len(7),  # type: ignore[arg-type]
    "of a name": lambda: getattr(7, "missing"),  # noqa: B009
    "of a key": lambda: {}["missing"],
    "of a value": lambda: int("x"),
    "of an argument of a library": lambda: json_format.ParseDict(7, 7),  # type: ignore[type-var]
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("is_after_answer", [False, True])
def test_a_mistake_of_ours_is_no_outage(
    is_after_answer: bool, mistake: str, api: Api, client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_after_answer and "library" in mistake:
        return  # told from a wrong answer by nothing
    send = client._send

    def mistaken(*arguments: Any) -> Any:
        if is_after_answer:
            send(*arguments)
        return MISTAKES[mistake]()

    monkeypatch.setattr(client, "_send", mistaken)
    api.replies(HELD)
    with pytest.raises((TypeError, AttributeError, KeyError, ValueError)) as failure:
        client.require(NAME)
    assert not isinstance(failure.value, errors.VertexError) and not clock.naps


def test_a_deletion_whose_answer_was_lost_is_done(api: Api, client: Client) -> None:
    api.first = [(503, {"error": {"code": 503, "message": "x"}}, {})]
    api.fails(404, "not there")
    client.delete(NAME)
    assert len(api.asked) == 2


@pytest.mark.parametrize("call", CALLS)
def test_without_faults_every_call_is_one_request(call: str, api: Api, client: Client, clock: Clock) -> None:
    done = {"name": "1", "done": True, "response": {"@type": "type.googleapis.com/google.protobuf.Empty"}}
    api.replies({"delete": done, "create": HELD, "get": HELD}.get(call, {}))
    CALLS[call](client)
    assert len(api.asked) == 1
    assert not clock.naps


@pytest.mark.parametrize("status", [400, 403, 404, 429, 503])
def test_error_messages_omit_the_address(status: int, api: Api, client: Client) -> None:
    api.fails(status, "replicaCount: must be 1")
    with pytest.raises(errors.VertexError) as failure:
        client.require(NAME)
    assert str(failure.value) == "replicaCount: must be 1"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (400, {"error": {"code": 400, "message": "first\nsecond"}}),
        (502, b"<html>\n<body>Bad gateway</body>\n</html>"),
    ],
    ids=["two lines", "a gateway's page"],
)
def test_error_messages_are_one_line(status: int, answer: Any, call: str, api: Api, client: Client) -> None:
    api.replies(answer, status)
    with pytest.raises(errors.VertexError) as failure:
        CALLS[call](client)
    assert len(str(failure.value).splitlines()) == 1


@pytest.mark.parametrize("call", [name for name in CALLS if name != "cancel"])  # whose answer has no content
def test_a_foreign_answer_raises_unavailable(call: str, api: Api, client: Client) -> None:
    api.replies(b"<html>\n<body>Welcome to the hotel's network</body>\n</html>")
    with pytest.raises(errors.Unavailable) as failure:
        CALLS[call](client)
    assert len(str(failure.value).splitlines()) == 1


@pytest.mark.parametrize("call", CALLS)
def test_a_closed_port_raises_unavailable_with_the_address(call: str) -> None:
    address = f"127.0.0.1:{unused_port()}"
    with pytest.raises(errors.Unavailable) as failure:
        CALLS[call](Client(Endpoint.for_server(f"http://{address}")))
    message = str(failure.value)
    assert message.startswith("no answer from ")
    assert address.partition(":")[2] in message
    assert len(message.splitlines()) == 1


def test_a_closed_port_shows_no_http_library_details() -> None:
    with pytest.raises(errors.Unavailable) as failure:
        Client(Endpoint.for_server(f"http://127.0.0.1:{unused_port()}")).require(NAME)
    assert "HTTPConnection" not in str(failure.value)


def test_the_local_server_ignores_http_proxy(api: Api, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    api.replies(HELD)
    assert client.require(NAME) == HELD
    assert client.log_lines(NAME, 1) == []


def test_missing_credentials_say_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    def none_found(**_: Any) -> Any:
        raise DefaultCredentialsError("a page of text")

    monkeypatch.setattr(google.auth, "default", none_found)
    with pytest.raises(errors.PermissionDenied, match="gcloud auth application-default login"):
        Client(Endpoint.for_region("us-central1")).require(NAME)


def test_credentials_keep_their_own_quota_project(monkeypatch: pytest.MonkeyPatch) -> None:
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    asked: list[dict[str, Any]] = []

    def find_default(**options: Any) -> Any:
        asked.append(options)
        raise DefaultCredentialsError("none here")

    monkeypatch.setattr(google.auth, "default", find_default)
    with pytest.raises(errors.PermissionDenied):
        Client(Endpoint.for_region("us-central1")).require(NAME)
    assert asked == [{"scopes": ["https://www.googleapis.com/auth/cloud-platform"]}]


def test_expired_credentials_say_how_to_renew_them(api: Api, client: Client) -> None:
    from google.auth.credentials import Credentials
    from google.auth.exceptions import RefreshError

    class Expired(Credentials):
        def refresh(self, request: Any) -> None:
            raise RefreshError("Reauthentication is needed.")

    vars(client)["_credentials"] = Expired()  # type: ignore[no-untyped-call]
    with pytest.raises(errors.PermissionDenied, match="gcloud auth application-default login"):
        client.require(NAME)


def test_cloud_endpoints_are_regional() -> None:
    assert Endpoint.for_region("europe-west4") == Endpoint(
        "https://europe-west4-aiplatform.googleapis.com", "https://logging.googleapis.com"
    )


def test_one_server_stands_for_all_endpoints() -> None:
    url = "http://127.0.0.1:8080"
    assert Endpoint.for_server(url) == Endpoint(url, url, executions=url)


def test_what_google_s_client_rejects_is_not_sent(api: Api, client: Client) -> None:
    job = job_of(TRAINING_PIPELINE) | {
        "modelToUpload": {"baseModelSource": {"genieSource": {}, "modelGardenSource": {}}}
    }
    with pytest.raises(errors.InvalidRequest, match=r"^Google's client does not send it: .*oneof"):
        create(client, TRAINING_PIPELINE, job)
    assert api.asked == []


WORKFLOW = f"{PARENT}/workflows/team_dev_nightly"


def test_executions_come_with_errors_and_results(api: Api, client: Client) -> None:
    api.replies({"executions": [{"name": f"{WORKFLOW}/executions/1", "state": "FAILED"}]})
    assert client.list_executions(WORKFLOW) == [{"name": f"{WORKFLOW}/executions/1", "state": "FAILED"}]
    fields = "executions(name,state,startTime,result,error/payload)"
    query = {"pageSize": ["100"], "view": ["FULL"], "fields": [fields]}
    assert api.asked == [("GET", f"/v1/{WORKFLOW}/executions", query, None)]


def test_a_missing_workflow_has_no_executions(api: Api, client: Client) -> None:
    api.fails(404, "no such workflow")
    assert client.list_executions(WORKFLOW) == []
    api.fails(403, "workflows.executions.list denied")
    with pytest.raises(errors.PermissionDenied, match="list denied"):
        client.list_executions(WORKFLOW)


QUERY = {"filter": "x"}


def test_pages_are_read_until_enough_entries_came() -> None:
    pages = [
        {"nextPageToken": "a"},
        {"entries": [{"n": 3}, {"n": 2}], "nextPageToken": "b"},
        {"entries": [{"n": 1}, {}]},
    ]
    queries: list[Mapping[str, Any]] = []

    def send_query(query: Mapping[str, Any]) -> Mapping[str, Any]:
        queries.append(dict(query))
        return pages[len(queries) - 1]

    assert log_entries(send_query, QUERY, 3) == [{"n": 3}, {"n": 2}, {"n": 1}]
    assert [query.get("pageToken") for query in queries] == [None, "a", "b"]
    assert {query["pageSize"] for query in queries} == {3} and QUERY == {"filter": "x"}


def test_an_endless_search_is_given_up() -> None:
    queries: list[Mapping[str, Any]] = []

    def send_query(query: Mapping[str, Any]) -> Mapping[str, Any]:
        queries.append(query)
        return {"nextPageToken": "again"}

    assert log_entries(send_query, QUERY, 3) == []
    assert len(queries) == 20
