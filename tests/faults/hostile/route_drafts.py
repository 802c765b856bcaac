"""Random requests to each group of routes, before anything but their JSON is changed."""

import json
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.faults.hostile.json_mutation import build_json_body
from tests.faults.hostile.known_names import KnownNames
from tests.faults.hostile.values import BUCKETS, NO_BUCKETS, OBJECTS, STORED_OBJECTS, TEXTS
from tests.vertex_emulator.running import PARENT, custom_job, pool
from tests.vertex_emulator.test_pipelines import model, pipeline
from tests.vertex_emulator.test_studies import study

_LIST_PARAMETERS = ("filter", "pageSize", "pageToken", "readMask", "orderBy")
_VERBS = (
    "",
    ":wait",
    ":cancel",
    ":listVersions",
    ":export",
    ":copy",
    ":mergeVersionAliases",
    ":predict",
    "/operations",
    "/operations/1:wait",
    "/evaluations",
)
_BODIES: dict[str, Any] = {
    "customJobs": custom_job(pool("pass")),
    "hyperparameterTuningJobs": study("pass", trials=1, parallel=1),
    "trainingPipelines": pipeline({"worker_pool_specs": [pool("pass")]}, modelToUpload=model()),
    "models:upload": {"model": model()},
    "operations": {},
}


class Draft(NamedTuple):
    """A request whose parts may still be changed."""

    method: str
    path: str
    query: list[tuple[str, str]] = []
    body: bytes = b""
    headers: list[tuple[str, str]] = []


class RouteDrafts:
    """Drafts by dice, with names that there are by `known`."""

    def __init__(self, dice: Random, known: KnownNames) -> None:
        self._dice, self._known = dice, known

    def build_draft(self) -> Draft:
        """Return a draft to any group of routes."""
        groups = (
            self._api,
            self._api,
            self._logging,
            self._storage,
            self._storage,
            self._upload,
            self._page,
            self._admin,
        )
        return self._dice.choice(groups)()

    def choose_text(self) -> str:
        """Return a text for any parameter."""
        return self._dice.choice([*TEXTS, self._dice.choice(self._known.tokens)])

    def _choose_bucket(self) -> str:
        return self._dice.choice(NO_BUCKETS if self._dice.random() < 0.1 else BUCKETS)

    def _choose_texts_of(self, names: tuple[str, ...]) -> list[tuple[str, str]]:
        return [(name, self.choose_text()) for name in self._dice.sample(names, self._dice.randrange(len(names)))]

    def _api(self) -> Draft:
        dice = self._dice
        version, job = dice.choice(["v1", "v1", "v1beta1", "v2"]), dice.choice(self._known.jobs)
        kind = dice.choice([*_BODIES, "x"])
        match dice.choice(
            ["list", "list", "get", "get", "create", "create", "create", "cancel", "delete", "change model", "other"]
        ):
            case "list":
                return Draft("GET", f"/{version}/{PARENT}/{kind}", self._choose_texts_of(_LIST_PARAMETERS))
            case "get":
                return Draft("GET", f"/{version}/{job}")
            case "delete":
                return Draft("DELETE" if dice.random() < 0.2 else "GET", f"/{version}/{job}")
            case "cancel":
                return Draft("POST", f"/{version}/{job}:cancel", [], *build_json_body(dice, {}))
            case "create":
                body = build_json_body(dice, _BODIES.get(kind, {}))
                return Draft("POST", f"/{version}/{PARENT}/{kind}", [], *body)
            case "change model":
                return self._model_change(f"/{version}/{PARENT}/models")
        path = f"/{version}/{job}{dice.choice(_VERBS)}"
        return Draft(dice.choice(["GET", "POST"]), path, [], *build_json_body(dice, {}))

    def _logging(self) -> Draft:
        dice = self._dice
        job = dice.choice(self._known.jobs).rpartition("/")[2]
        condition = dice.choice(
            ["", "", ' AND severity>="ERROR"', ' AND textPayload:"x"', f" AND {self.choose_text()}"]
        )
        body = {
            "filter": f'resource.labels.job_id="{job}"{condition}',
            "pageSize": dice.choice([1, 1000, 10**6, "5"]),
            "orderBy": dice.choice(["timestamp asc", "timestamp desc", "x"]),
        }
        if dice.random() < 0.3:
            body["pageToken"] = self.choose_text()
        return Draft("POST", "/v2/entries:list", [], *build_json_body(dice, body))

    def _model_change(self, models: str) -> Draft:
        """A request to change the model `hostile`, which an upload may have made, or to make others of it."""
        dice = self._dice
        one = f"{models}/hostile{dice.choice(['', '@1', '@default', '@9', '@-', '@'])}"
        destination = {"artifactDestination": {"outputUriPrefix": f"gs://{self._choose_bucket()}/exports"}}
        method, path, query, body = dice.choice(
            [
                ("POST", f"{models}:upload", [], {"modelId": "hostile", "model": model()}),
                ("PATCH", one, [("updateMask", "display_name,labels")], {"displayName": "x", "labels": {"a": "b"}}),
                ("PATCH", one, [("updateMask", self.choose_text())], model()),
                ("POST", f"{one}:mergeVersionAliases", [], {"versionAliases": ["blue", "-green"]}),
                ("POST", f"{one}:export", [], {"outputConfig": destination}),
                ("POST", f"{models}:copy", [], {"sourceModel": one.partition("/v1/")[2] or one}),
                ("DELETE", f"{one}:deleteVersion", [], {}),
            ]
        )
        return Draft(method, path, query, *build_json_body(dice, body))

    def _storage(self) -> Draft:
        dice = self._dice
        bucket = self._choose_bucket()
        path = f"/storage/v1/b/{bucket}"
        one = f"{path}/o/{quote(dice.choice(OBJECTS), safe='', errors='surrogateescape')}"
        return dice.choice(
            [
                Draft("GET", "/storage/v1/b"),
                Draft("POST", "/storage/v1/b", [("project", "p")], *build_json_body(dice, {"name": bucket})),
                Draft(dice.choice(["GET", "GET", "DELETE"]), path),
                Draft("GET", f"{path}/o", self._choose_texts_of(("prefix", "maxResults", "pageToken"))),
                Draft("GET", f"{path}/o", [("delimiter", "/"), *self._choose_texts_of(("prefix", "pageToken"))]),
                Draft("DELETE", one),
                Draft("GET", f"/download{one}", [("alt", "media")]),
                Draft("GET", one, [("fields", "name,size")]),
                Draft("GET", one, dice.choice([[], [("alt", "media")]])),
                self._storage_change(bucket, one),
                self._storage_change(bucket, one),
            ]
        )

    def _storage_change(self, bucket: str, one: str) -> Draft:
        """A request that makes an object of others, or changes metadata, perhaps as part of a batch."""
        dice = self._dice
        target = quote(dice.choice(STORED_OBJECTS), safe="")
        fields = {"contentType": self.choose_text(), "metadata": dice.choice([{"a": "b"}, {"a": None}, [1], None])}
        composition = {"sourceObjects": [{"name": dice.choice(OBJECTS)} for _ in range(dice.choice([0, 2, 33]))]}
        method, path, body = dice.choice(
            [
                ("POST", f"{one}/rewriteTo/b/{bucket}/o/{target}", {}),
                ("POST", f"{one}/copyTo/b/{self._choose_bucket()}/o/{target}", fields),
                ("POST", f"{one}/moveTo/o/{target}", {}),
                ("POST", f"/storage/v1/b/{bucket}/o/{target}/compose", composition),
                (dice.choice(["PATCH", "PUT"]), one, fields),
            ]
        )
        if dice.random() < 0.7:
            return Draft(method, path, [], *build_json_body(dice, body))
        call = f"{method} {path} HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{json.dumps(body)}"
        parts = "".join(f"--edge\r\n\r\n\r\n{call}\r\n" for _ in range(dice.choice([0, 1, 5, 101])))
        header = ("Content-Type", f"multipart/mixed; boundary={dice.choice(['edge', 'edge', '', '*' * 500])}")
        return Draft("POST", "/batch/storage/v1", [], f"{parts}--edge--".encode(errors="surrogateescape"), [header])

    def _upload(self) -> Draft:
        dice = self._dice
        path = f"{dice.choice(['', '/resumable'])}/upload/storage/v1/b/{self._choose_bucket()}/o"
        name, content = dice.choice(STORED_OBJECTS), dice.randbytes(dice.choice([0, 1, 1000, 300_000]))
        session = [("uploadType", "resumable"), ("upload_id", dice.choice(self._known.uploads))]
        chunk = dice.choice(["bytes 0-999/*", "bytes 0-999/1000", "bytes */*", "bytes 500-999/1000", "bytes 7-1/2"])
        metadata, json_type = build_json_body(dice, {"name": name})
        parts = b"--edge\r\nContent-Type: application/json\r\n\r\n%s\r\n--edge\r\n\r\n%s\r\n--%s--" % (
            *(metadata, content, dice.choice([b"edge", b"edge", b"", b"--"])),
        )
        boundary = ("Content-Type", f"multipart/related; boundary={dice.choice(['edge', 'edge', '', '*' * 500])}")
        return dice.choice(
            [
                Draft("POST", path, [("uploadType", "media"), ("name", name)], content),
                Draft("POST", path, [("uploadType", "multipart")], parts, [boundary]),
                Draft("POST", path, [("uploadType", "resumable")], metadata, json_type),
                Draft("PUT", path, session, content[:1000], [("Content-Range", chunk)]),
                Draft("PUT", path, session, content),
                Draft("DELETE", path, session),
            ]
        )

    def _page(self) -> Draft:
        dice, base = self._dice, "/vertex_emulator/page"
        job = "/".join(dice.choice(self._known.jobs).split("/")[-2:])
        bucket = f"gs://{self._choose_bucket()}"
        uri = [("uri", dice.choice([f"{bucket}/{dice.choice(OBJECTS)}", bucket, self.choose_text()]))]
        climb = f"{dice.choice(['..', '%2e%2e', '.', '%2fetc'])}/{dice.choice(['app.py', 'passwd', ''])}"
        path, query = dice.choice(
            [
                *[(f"{base}/files", uri)] * 2,
                (f"{base}/download", uri),
                (f"{base}/jobs", self._choose_texts_of(("text", "state", "before", "id"))),
                (f"{base}/jobs/{job}", []),
                (f"{base}/events", [("job", self.choose_text())]),
                (dice.choice(["/", "/files", f"/jobs/{job}", "/healthz", "/assets/page.js"]), []),
                (f"/assets/{climb}", []),
            ]
        )
        return Draft("GET", path, query)

    def _admin(self) -> Draft:
        dice = self._dice
        kind = dice.choice(["quota", "fail", "preempt", "oom"])
        fault = {"kind": kind, "name": dice.choice(["none", "a*", "[" * 99]), "count": 1}
        return dice.choice(
            [
                Draft("GET", "/vertex_emulator/status"),
                Draft("GET", f"/vertex_emulator/jobs/{dice.choice(self._known.jobs).rpartition('/')[2]}"),
                Draft("POST", "/vertex_emulator/faults", [], *build_json_body(dice, fault)),
                Draft("DELETE", "/vertex_emulator/faults"),
            ]
        )
