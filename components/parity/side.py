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

from vertex_api.names import KINDS, TERMINAL_STATES

from ..errors import ComponentError
from .probes import RUN_LABEL, Probe, Step, fill

STORAGE = "storage/"
END_SECONDS = 1800.0
"""How long a job may take: Vertex AI needs some minutes to start one."""
CLEAN_SECONDS = 300.0
_CALL_SECONDS = 60
_COLLECTIONS = (*KINDS, "models")
_UNTIL = {"running": TERMINAL_STATES | {"JOB_STATE_RUNNING"}, "ended": TERMINAL_STATES}


class ParityFailed(ComponentError):
    """A side cannot be asked, or something is left in it."""


@dataclass(frozen=True)
class Run:
    """What a run of `vertex-training parity` makes is known by, and where. It is what the journal keeps."""

    id: str
    project: str
    region: str
    service: str
    """The URL of the service, "" for Google's."""
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

    def _write(self, runs: list[Run]) -> None:
        if not runs:
            self.file.unlink(missing_ok=True)
            return
        new = self.file.with_suffix(".new")
        with new.open("w") as stream:
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
        """Ask all that a probe asks, and remove what it has made. Raises ParityFailed."""
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
        try:
            return [self._answer(step, variables, made) for step in probe.steps]
        finally:
            for name in made:
                self._remove(name)

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
                raise ParityFailed("stopped")
        name = answer.get("name") if isinstance(answer, dict) else None
        if step.method == "POST" and reply.ok and name and not path.startswith(STORAGE):
            made.append(str(name))
        if step.keep and name:
            variables[step.keep] = str(name)
        seen = tuple(states) if step.until else ()
        content_type = reply.headers.get("content-type", "")
        return Answer(f"{step.method} {step.path}", reply.status_code, content_type, answer, seen)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        import requests

        if path.startswith(STORAGE):
            url = f"{self.storage}/{path.removeprefix(STORAGE)}"
        elif path.startswith("projects/"):
            url = f"{self.api}/v1/{path}"
        else:
            url = f"{self.api}/v1/{self.parent}/{path}"
        try:
            # The same content type whatever is sent: both sides then read it by the same rule.
            return self.session.request(method, url, json=body, timeout=_CALL_SECONDS)
        except requests.RequestException as error:
            raise ParityFailed(f"{self.name}: {url}: no answer ({type(error).__name__})") from error

    def make_bucket(self) -> None:
        """Create the bucket of the run, if it is to have one of its own. Raises ParityFailed."""
        if self.run.owns_bucket:
            body = {"name": self.run.bucket, "location": self.run.region, "labels": {RUN_LABEL: self.run.id}}
            reply = self._call("POST", f"{STORAGE}storage/v1/b?project={self.run.project}", body)
            if not reply.ok:
                raise ParityFailed(f"{self.name}: {self.run.bucket}: is not created ({_message(reply)}); give --bucket")

    def clean(self) -> None:
        """Remove all that the run has made: what has its label, its objects and its bucket. Raises ParityFailed."""
        for collection in _COLLECTIONS:
            for name in [*self._labelled(collection)]:
                self._remove(name)
        bucket = f"{STORAGE}storage/v1/b/{self.run.bucket}"
        listed = self._call("GET", f"{bucket}/o?prefix={quote(self.run.folder + '/', safe='')}")
        for item in _json(listed).get("items", []) if listed.ok else []:
            self._call("DELETE", f"{bucket}/o/{quote(item['name'], safe='')}")
        if self.run.owns_bucket:
            reply = self._call("DELETE", bucket)
            if not reply.ok and reply.status_code != 404:
                raise ParityFailed(f"{self.name}: {self.run.bucket}: is not deleted ({_message(reply)})")

    def _labelled(self, collection: str) -> Iterator[str]:
        wanted = f'labels.{RUN_LABEL}="{self.run.id}"'
        path, token = f"{collection}?filter={quote(wanted)}", ""
        while True:
            reply = self._call("GET", f"{path}&pageToken={quote(token)}" if token else path)
            if not reply.ok:
                raise ParityFailed(f"{self.name}: {collection}: are not listed ({_message(reply)})")
            page = _json(reply)
            yield from (str(each["name"]) for each in page.get(collection, []))
            token = page.get("nextPageToken", "")
            if not token:
                return

    def _remove(self, name: str) -> None:
        """Cancel and delete one resource of the run; whatever else is gone or going already."""
        collection = name.split("/")[-2]
        if collection not in _COLLECTIONS:
            return
        deadline = time.monotonic() + CLEAN_SECONDS
        while (reply := self._call("GET", name)).ok:
            if _json(reply).get("state", "JOB_STATE_SUCCEEDED") not in TERMINAL_STATES:
                self._call("POST", f"{name}:cancel", {})
            elif self._call("DELETE", name).ok:
                return
            if time.monotonic() > deadline:
                raise ParityFailed(f"{self.name}: {name}: is not removed after {CLEAN_SECONDS:g} s; delete it by hand")
            time.sleep(self.pause)


def _json(reply: Any) -> Any:
    with contextlib.suppress(ValueError):
        return reply.json()
    return reply.text


def _message(reply: Any) -> str:
    answer = _json(reply)
    message = answer.get("error", {}).get("message") if isinstance(answer, dict) else None
    return " ".join(str(message or f"HTTP {reply.status_code}").split())[:300]


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
        (r"[\w.+-]+@[\w-]+(\.[\w-]+)+", "ACCOUNT"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"https?://[^/\s\"]+", "ENDPOINT"),
        (r"\bprojects/\d+", "projects/NUMBER"),
        (r"(?<=project=)\d+", "NUMBER"),
        (r"\b[0-9a-f]{10}\b(?=-\d)", "HEX"),
        (r"(?<!\d)\d{9,}(?!\d)", "ID"),
    )
)
_MASKED_FIELDS = ("etag", "generation", "selfLink", "mediaLink", "projectNumber")
