"""A side, Vertex AI or the emulator: it answers probes, and nothing that they make is left in it."""

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from vertex_api import credentials, locks
from vertex_api.answers import CAPACITY
from vertex_api.names import KINDS, TERMINAL_STATES
from vertex_api.retry import DISABLED_API, PROVISIONING

from ..errors import ComponentError
from ..jobs.removal import CANCEL_SECONDS
from .probes import RUN_LABEL, Probe, Step, fill

STORAGE = "storage/"
END_SECONDS = 1800.0
"""How long a job may take: Vertex AI needs some minutes to start one."""
_CALL_SECONDS = 60
_PASSING = (502, 503, 504)
"""Answers that say nothing of what was asked; a call is made again at most `_RETRIES` times after them."""
_RETRIES = 3
_OWN_STATE_SECONDS = 600.0
"""For how long a call is made again that says something of the project alone: more than a minute's limit of requests,
and than Google's figure for what is new in a project."""
STOPPED = "stopped"
_COLLECTIONS = (*KINDS, "models")
_MAX_PAGES = 100
"""Of a list, and of objects that are removed: a run makes some hundred."""
_UNTIL = {"running": TERMINAL_STATES | {"JOB_STATE_RUNNING"}, "ended": TERMINAL_STATES}


class ParityFailed(ComponentError):
    """A side cannot be asked, or something is left in it."""


@dataclass(frozen=True)
class Run:
    """What a run of `vertex-training parity` makes is known by, and where. It is what the journal keeps."""

    id: str
    project: str
    region: str
    service: str | None
    """The URL of the service, "" for Google's, None if captured answers stand for it."""
    bucket: str
    owns_bucket: bool
    emulator: str
    """The data folder of the emulator that the run starts."""

    @property
    def folder(self) -> str:
        """The folder of its objects in the bucket."""
        return f"parity/{self.id}"


@dataclass(frozen=True)
class Journal:
    """A file with a line for each run that is not cleaned up, written before a run makes anything."""

    file: Path

    def add(self, run: Run) -> None:
        """Write down a run."""
        self._write([*self.runs(), run])

    def runs(self) -> list[Run]:
        """Return the runs that may have left something. Raises ParityFailed."""
        try:
            lines = self.file.read_text().splitlines()
            return [Run(**json.loads(line)) for line in lines]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise ParityFailed(f"{self.file}: is no journal of parity; move it away") from error

    def remove(self, run: Run) -> None:
        """Forget a run that has left nothing."""
        self._write([each for each in self.runs() if each.id != run.id])

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others that use this file out for the block. Raises ParityFailed if one is at work.

        The lock is on the folder, so that no file is left, and ends with its process.
        """
        folder = os.open(self.file.absolute().parent, os.O_RDONLY)
        try:
            if not locks.try_take(folder):
                raise ParityFailed(f"{self.file}: another run is at work in this folder; wait for it")
            yield
        finally:
            os.close(folder)

    def _write(self, runs: list[Run]) -> None:
        if not runs:
            self.file.unlink(missing_ok=True)
            return
        new = self.file.with_suffix(".new")
        new.unlink(missing_ok=True)  # a branch may have brought a link
        with new.open("x") as stream:
            stream.writelines(f"{json.dumps(asdict(run))}\n" for run in runs)
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(self.file)


@dataclass(frozen=True)
class Answer:
    """What a side answered to a step; of a repeated call its last answer, and the `states` of the job in order."""

    call: str
    status: int
    type: str
    body: Any
    states: tuple[str, ...] = ()


@dataclass
class Side:
    """Where the training API and Cloud Storage answer, and a session of `requests` that may call them.

    `name` is how reports call it, `image` what jobs run there, `pause` the seconds between two calls that are repeated.
    """

    name: str
    api: str
    storage: str
    session: Any
    run: Run
    image: str
    pause: float
    stop: threading.Event = field(default_factory=threading.Event)
    """Ends all waits."""

    @property
    def parent(self) -> str:
        """The location that the probes ask for."""
        return f"projects/{self.run.project}/locations/{self.run.region}"

    def answers(self, probe: Probe) -> list[Answer]:
        """Ask all that a probe asks, and remove what it has made. Raises ParityFailed.

        What cannot be removed in time is left to `clean`: the answers count whatever becomes of it.
        """
        variables = {
            "project": self.run.project,
            "region": self.run.region,
            "parent": self.parent,
            "bucket": self.run.bucket,
            "folder": self.run.folder,
            "image": self.image,
            "run": self.run.id,
        }
        made: list[str] = []
        answers: list[Answer] = []
        try:
            for step in probe.steps:
                answers.append(self._answer(step, variables, made))
                if answers[-1].status == 429 and not probe.is_about_quota:
                    raise ParityFailed(f"{self.name}: the project has too little quota ({_message(answers[-1].body)})")
        except ParityFailed as error:
            done = f", after {len(answers)} of {len(probe.steps)} calls" if answers else ""
            raise ParityFailed(f"{error}{done}") from error
        finally:
            for name in () if self.stop.is_set() else made:
                with contextlib.suppress(ParityFailed):
                    self._remove(name)
        return answers

    def _is_own(self, name: str) -> bool:
        """Whether a name that an answer has is that of a job or model here; the project may be its number."""
        project = rf"({re.escape(self.run.project)}|[0-9]+)"
        collections = "|".join(_COLLECTIONS)
        return bool(re.fullmatch(rf"projects/{project}/locations/{self.run.region}/({collections})/[\w.@-]+", name))

    def _answer(self, step: Step, variables: dict[str, str], made: list[str]) -> Answer:
        path = fill(step.path, variables)
        if "${" in path:  # a step before has made nothing that this one could ask for
            return Answer(f"{step.method} {step.path}", 0, "", "not asked: an earlier step was refused")
        body = None if step.body is None else fill(step.body, variables)
        states: list[str] = []
        deadline = time.monotonic() + END_SECONDS
        while True:
            reply = self._call(step.method, path, body)
            answer = _json(reply)
            state = answer.get("state") if isinstance(answer, dict) else None
            if state and state != (states[-1] if states else None):
                states.append(str(state))
            if not step.until or state in _UNTIL[step.until] or not reply.ok:
                break
            if time.monotonic() > deadline:
                raise ParityFailed(f"{self.name}: {path}: still {state} after {END_SECONDS:g} s")
            if self.stop.wait(self.pause):
                raise ParityFailed(STOPPED)
        name = answer.get("name") if isinstance(answer, dict) else None
        name = name if isinstance(name, str) and self._is_own(name) else None
        if step.method == "POST" and reply.ok and name and not path.startswith(STORAGE):
            made.append(name)
        if step.keep and name:
            variables[step.keep] = name
        seen = tuple(states) if step.until else ()
        content_type = reply.headers.get("content-type", "")
        return Answer(f"{step.method} {step.path}", reply.status_code, content_type, answer, seen)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        import requests
        from google.auth.exceptions import GoogleAuthError

        if path.startswith(STORAGE):
            url = f"{self.storage}/{path.removeprefix(STORAGE)}"
        elif path.startswith("projects/"):
            url = f"{self.api}/v1/{path}"
        else:
            url = f"{self.api}/v1/{self.parent}/{path}"
        deadline, retries = time.monotonic() + _OWN_STATE_SECONDS, 0
        while True:
            try:
                # The same content type whatever is sent: both sides then read it by the same rule.
                reply = self.session.request(method, url, json=body, timeout=_CALL_SECONDS)
            except requests.RequestException as error:
                raise ParityFailed(f"{self.name}: {url}: no answer ({type(error).__name__})") from error
            except GoogleAuthError as error:
                raise ParityFailed(f"{self.name}: {credentials.explain(error)}") from error
            if reply.status_code in _PASSING and retries < _RETRIES:
                retries += 1
            elif reason := _own_state(reply):
                if time.monotonic() > deadline:
                    raise ParityFailed(f"{self.name}: {url}: {reason}, after {_OWN_STATE_SECONDS:g} s")
            else:
                return reply
            if self.stop.wait(self.pause):
                raise ParityFailed(STOPPED)

    def check(self) -> None:
        """Raise ParityFailed if the side does not let the probes ask it."""
        for _ in self._labelled(_COLLECTIONS[0]):
            pass

    def make_bucket(self) -> None:
        """Create the bucket of the run, if it is to have one of its own. Raises ParityFailed."""
        if self.run.owns_bucket:
            body = {
                "name": self.run.bucket,
                "location": self.run.region,
                "labels": {RUN_LABEL: self.run.id},
                "softDeletePolicy": {"retentionDurationSeconds": "0"},  # else what is deleted is kept for a week
                "iamConfiguration": {
                    "uniformBucketLevelAccess": {"enabled": True},
                    "publicAccessPrevention": "enforced",
                },  # policies of organizations ask for both
            }
            reply = self._call("POST", f"{STORAGE}storage/v1/b?project={self.run.project}", body)
            if not reply.ok:
                raise ParityFailed(f"{self.name}: {self.run.bucket}: is not created ({_refusal(reply)}); give --bucket")

    def clean(self) -> None:
        """Remove all that the run has made: what has its label, its objects and its bucket. Raises ParityFailed."""
        for collection in _COLLECTIONS:
            for name in [*self._labelled(collection)]:
                self._remove(name)
        bucket = f"{STORAGE}storage/v1/b/{self.run.bucket}"
        for _ in range(_MAX_PAGES):
            names = _names(self._listed(f"{bucket}/o?prefix={quote(self.run.folder + '/', safe='')}"), "items")
            if not names:
                break
            for name in names:
                self._delete(f"{bucket}/o/{quote(name, safe='')}")
        if self.run.owns_bucket:
            self._delete(bucket)

    def _delete(self, path: str) -> None:
        reply = self._call("DELETE", path)
        if not reply.ok and reply.status_code != 404:
            raise ParityFailed(f"{self.name}: {path.removeprefix(STORAGE)}: is not deleted ({_refusal(reply)})")

    def _listed(self, path: str) -> Any:
        """Return a page of a list, an empty one of a bucket that does not exist. Raises ParityFailed."""
        reply = self._call("GET", path)
        if reply.status_code == 404 and path.startswith(STORAGE):
            return {}
        page = _json(reply)
        if reply.ok and isinstance(page, dict):
            return page
        shown = path.removeprefix(STORAGE).partition("?")[0]
        raise ParityFailed(f"{self.name}: {shown}: is not listed ({_refusal(reply)})")

    def _labelled(self, collection: str) -> Iterator[str]:
        wanted = f'labels.{RUN_LABEL}="{self.run.id}"'
        path, token = f"{collection}?filter={quote(wanted)}", ""
        for _ in range(_MAX_PAGES):
            page = self._listed(f"{path}&pageToken={quote(token, safe='')}" if token else path)
            yield from filter(self._is_own, _names(page, collection))
            token = str(page.get("nextPageToken") or "")
            if not token:
                return
        raise ParityFailed(f"{self.name}: {collection}: the list does not end")

    def _remove(self, name: str) -> None:
        """Cancel and delete one resource of the run, and return when it is gone. Raises ParityFailed."""
        deadline = time.monotonic() + CANCEL_SECONDS
        while (reply := self._call("GET", name)).status_code != 404:
            answer = _json(reply)
            is_read = reply.ok and isinstance(answer, dict)
            state = str(answer.get("state", "JOB_STATE_SUCCEEDED")) if is_read else ""
            if state in TERMINAL_STATES:
                reply = self._call("DELETE", name)
                if reply.ok:
                    return
            elif reply.ok and not state.endswith("CANCELLING"):
                self._call("POST", f"{name}:cancel", {})
            if time.monotonic() > deadline or reply.status_code in (401, 403):
                raise ParityFailed(f"{self.name}: {name}: is not removed ({state or _refusal(reply)})")
            time.sleep(self.pause)


def _own_state(reply: Any) -> str:
    """Return why an answer is of this project's present state, and so says nothing of what was asked; "" if it is not.

    A limit of requests, an API that was enabled a moment ago, and agents that Google is making for the first job.
    """
    if reply.ok:
        return ""
    text = reply.text
    if reply.status_code == 429 and ("RATE_LIMIT_EXCEEDED" in text or not CAPACITY.search(text)):
        return "it has too many requests (429)"
    return next((each.reason for each in (PROVISIONING, DISABLED_API) if each.refusal.search(text)), "")


def _json(reply: Any) -> Any:
    """Return what an answer holds, without the credential of its request, which some servers and proxies repeat."""
    try:
        answer = reply.json()
    except (ValueError, RecursionError):
        answer = reply.text
    _, _, credential = (reply.request.headers.get("authorization", "") if reply.request else "").partition(" ")
    if not credential:
        return answer

    def without(child: Any) -> Any:
        if isinstance(child, dict):
            return {without(name): without(each) for name, each in child.items()}
        if isinstance(child, list):
            return [without(each) for each in child]
        return child.replace(credential, "TOKEN") if isinstance(child, str) else child

    return without(answer)


def _names(page: dict[str, Any], collection: str) -> list[str]:
    """Return the names in a page of a list, without what has none."""
    items = page.get(collection)
    names = [each.get("name") for each in items if isinstance(each, dict)] if isinstance(items, list) else []
    return [name for name in names if isinstance(name, str)]


def _message(answer: Any, otherwise: str = "no reason given") -> str:
    """Return what an answer of the API says of a refusal, in one line."""
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return " ".join(str(message or otherwise).split())[:300]


def _refusal(reply: Any) -> str:
    return _message(_json(reply), f"HTTP {reply.status_code}")


def masked(value: Any, run: Run, image: str) -> Any:
    """Return an answer without what differs by project, time and place, and without anything that names its owner."""
    own = ((run.bucket, "BUCKET"), (run.id, "RUN"), (run.project, "PROJECT"), (image, "IMAGE"))

    def mask(text: str) -> str:
        for part, name in own:
            text = text.replace(part, name) if part else text
        for pattern, name in _MASKS:
            text = pattern.sub(name, text)
        return text

    def walk(child: Any, key: str = "") -> Any:
        if isinstance(child, Mapping):
            return {mask(name): walk(each, name) for name, each in child.items()}
        if isinstance(child, list):
            return [walk(each) for each in child]
        if key in _MASKED_FIELDS:
            return key.upper()
        return mask(child) if isinstance(child, str) else child

    return walk(value)


_MASKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"ya29\.[\w.-]+|Bearer \S+|eyJ[\w-]+\.[\w-]+\.[\w-]*", "TOKEN"),
        (r"AIza[\w-]{30,}", "TOKEN"),
        (r"[\w.+-]+(@|%40)[\w-]+(\.[\w-]+)+|principal(Set)?://[^\s\"']+", "ACCOUNT"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
        (r"\b[a-z][a-z0-9-]*-tp\b", "TENANT"),
        (r"\b\d{1,3}(\.\d{1,3}){3}\b", "ADDRESS"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"https?://[^/\s\"]+", "ENDPOINT"),
        (r"\bprojects/\d+", "projects/NUMBER"),
        (r"(?<=project=)\d+", "NUMBER"),
        (r"\b[0-9a-f]{10}\b(?=-\d)", "HEX"),
        (r"(?<!\d)\d{9,}(?!\d)", "ID"),
    )
)
_MASKED_FIELDS = ("etag", "generation", "selfLink", "mediaLink", "projectNumber")
