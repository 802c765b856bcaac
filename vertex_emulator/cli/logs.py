"""The command `logs`: a job's log as lines for a terminal."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vertex_api.errors import without_log_link
from vertex_api.names import TERMINAL_STATES
from vertex_emulator.cli.emulator import job_path, send, unserved
from vertex_emulator.data_folder import DataFolder, is_locked, require_endpoint
from vertex_emulator.errors import ApiError, EmulatorError, EmulatorNotRunning, JobFailed
from vertex_emulator.times import format_time, parse_time

_PAGE_SIZE = 1000
_POLL_SECONDS = 0.5
_OVERLAP_NS = 5 * 10**9  # lines of different replicas arrive slightly out of order
_MAX_OUTAGE_SECONDS = 60.0
# Characters that control a terminal or change the direction of text.
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_VISIBLE = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS if chr(code) != "\t"}


class Source(NamedTuple):
    """What knows about jobs, by id or name, and lists log entries as Cloud Logging's `entries.list` does."""

    describe: Callable[[str], Any]
    list_entries: Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class JobLog:
    """The log of one job, given by id or name, of the data folder `root`.

    `task` (`workerpool0-0`, `service`) and `trial` select one replica and one trial. With `raw`, control characters
    that containers wrote are printed as they are; with `as_json`, a line is an entry as Cloud Logging's API returns it.
    """

    root: Path
    job: str
    task: str | None = None
    trial: int | None = None
    raw: bool = False
    as_json: bool = False

    def read(self) -> Iterator[str]:
        """Read the lines so far, without an emulator from the data folder itself.

        Raises EmulatorError, also for an unknown job, task or trial.
        """
        is_served = is_locked(DataFolder(self.root).lock)
        with nullcontext(self._emulator()) if is_served else self._folder() as source:
            status = self._fetch_status(source, self.job)
            for entry in self._entries(source, status["log"], 0):
                yield self._render(entry)

    def follow(self) -> Iterator[str]:
        """Read lines until the job ends, then its state. Raises JobFailed if it did not succeed.

        A restart of the emulator neither ends the log nor repeats lines. Raises EmulatorNotRunning and what `read`
        raises, too.
        """
        require_endpoint(self.root)
        source, job = self._emulator(), self.job
        shown: dict[str, int] = {}
        newest = 0
        outage_since: float | None = None

        while True:
            begin = time.monotonic()
            try:
                status = self._fetch_status(source, job)
                job = status["name"]  # a later job may get the same name
                for entry in self._entries(source, status["log"], max(newest - _OVERLAP_NS, 0)):
                    if entry["insertId"] not in shown:
                        at = shown[entry["insertId"]] = parse_time(entry["timestamp"]) or 0
                        newest = max(newest, at)
                        yield self._render(entry)
            except EmulatorNotRunning:
                outage_since = outage_since or time.monotonic()
                if time.monotonic() - outage_since > _MAX_OUTAGE_SECONDS:
                    raise
            else:
                outage_since = None
                if status["state"] in TERMINAL_STATES:
                    if not self.as_json:
                        yield f"{job} {status['state']}"
                    if status["state"] != "JOB_STATE_SUCCEEDED":
                        error = without_log_link(status["error"])
                        raise JobFailed(f"{job} ended in {status['state']}: {error}")
                    return
                shown = {insert_id: at for insert_id, at in shown.items() if at >= newest - _OVERLAP_NS}

            # Docker reads the whole log of a running container on every request.
            time.sleep(max(_POLL_SECONDS, time.monotonic() - begin))

    def _fetch_status(self, source: Source, job: str) -> Any:
        """Return what the source says about a job. Raises EmulatorError for an unknown job, task or trial."""
        status = source.describe(job)
        name, tasks, max_trial = status["name"], status["log"]["tasks"], status["log"]["maxTrial"]
        if self.task is not None and tasks is not None and self.task not in tasks:
            raise EmulatorError(f"{name} has no task {self.task}; tasks: {', '.join(tasks)}")
        if self.trial is not None and max_trial is not None and not 1 <= self.trial <= max_trial:
            trials = f"its trials are 1 to {max_trial}" if max_trial else "it is no tuning job"
            raise EmulatorError(f"{name} has no trial {self.trial}; {trials}")
        return status

    def _emulator(self) -> Source:
        """The emulator that serves the folder, or the next one after a restart."""

        def ask(path: str, body: Mapping[str, Any] | None = None) -> Any:
            return send(require_endpoint(self.root), path, body)

        return Source(lambda job: ask(job_path(job)), lambda body: ask("/v2/entries:list", body))

    @contextmanager
    def _folder(self) -> Iterator[Source]:
        """The folder, and Docker for what containers have written that run on without an emulator."""
        # Imported here, as a running emulator needs none of it.
        from vertex_emulator.api.emulator import describe
        from vertex_emulator.api.logging import LogService
        from vertex_emulator.replicas.executor import Executor

        def find(job: str) -> Any:
            try:
                return describe(database, job)
            except ApiError as error:
                if error.status != "NOT_FOUND":
                    raise
                message = f"There is no job {job} in {self.root}; choose another folder with --data"
                raise EmulatorError(message) from error

        with unserved(self.root) as (data, database):
            with database.read() as transaction:
                emulator_id = transaction.settings.get("emulator") or ""
            yield Source(find, LogService(database, Executor(emulator_id, lambda _: None), data).list_entries)

    def _entries(self, source: Source, log: Mapping[str, Any], since_ns: int) -> Iterator[dict[str, Any]]:
        terms = [f'resource.labels.job_id="{log["job"]}"', f'timestamp>="{format_time(since_ns)}"']
        trial = self.trial or log["trial"]
        if self.task is not None:
            terms.append(f'resource.labels.task_name="{self.task}"')
        if trial is not None:
            terms.append(f'labels."ml.googleapis.com/trial_id"="{trial}"')
        body: dict[str, Any] = {"filter": " AND ".join(terms), "pageSize": _PAGE_SIZE}
        while True:
            reply = source.list_entries(body)
            yield from reply.get("entries", [])
            if "nextPageToken" not in reply:
                return
            body["pageToken"] = reply["nextPageToken"]

    def _render(self, entry: Mapping[str, Any]) -> str:
        if self.as_json:
            return json.dumps(entry)
        task = entry["resource"]["labels"]["task_name"]
        trial = entry["labels"].get("ml.googleapis.com/trial_id")
        payload = entry.get("jsonPayload")
        text = entry.get("textPayload", "") if payload is None else _message(payload)
        if task == "service":
            text = without_log_link(text)
        if not self.raw:
            text = text.translate(_VISIBLE)
        return f"{entry['timestamp'][:23]}Z {entry['severity']:<7} {task}{f' trial {trial}' if trial else ''}  {text}"


def _message(payload: Mapping[str, Any]) -> str:
    message = payload.get("message")
    return message if isinstance(message, str) else json.dumps(payload, ensure_ascii=False)
