"""A job's log as lines for a terminal."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_api.states import TERMINAL_STATES
from vertex_emulator.errors import EmulatorNotRunning, JobFailed
from vertex_emulator.times import format_time, parse_time

_PAGE = 1000
_POLL_SECONDS = 0.5
_OVERLAP_NS = 5 * 10**9  # lines of different replicas are seen a little out of order
_AWAY_SECONDS = 60.0
# What a terminal would obey, and characters that change the direction of what follows them.
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_VISIBLE = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS if chr(code) != "\t"}

Ask = Callable[[str, Mapping[str, Any] | None], Any]


@dataclass(frozen=True)
class JobLog:
    """The log of one job; `ask` is a request to the emulator (path, body or None) and raises NotRunning.

    `task` (`workerpool0-0`, `service`) and `trial` narrow it to one replica and one trial. With `raw` the terminal gets
    what the containers wrote, control characters and all.
    """

    ask: Ask
    job: str
    task: str | None = None
    trial: int | None = None
    raw: bool = False

    def lines(self) -> Iterator[str]:
        """What is there now. Raises EmulatorError for an unknown job."""
        status = self._status()
        for entry in self._entries(status, 0):
            yield self._line(entry)

    def follow(self) -> Iterator[str]:
        """What is there and what comes, up to the job's end and with its state. Raises JobFailed at that end.

        An emulator that goes away is waited for: a restart neither ends the log nor repeats it.
        """
        shown: dict[str, int] = {}
        newest = 0
        away_since: float | None = None
        while True:
            begin = time.monotonic()
            try:
                status = self._status()
                for entry in self._entries(status, max(newest - _OVERLAP_NS, 0)):
                    if entry["insertId"] not in shown:
                        at = shown[entry["insertId"]] = parse_time(entry["timestamp"]) or 0
                        newest = max(newest, at)
                        yield self._line(entry)
            except EmulatorNotRunning:
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > _AWAY_SECONDS:
                    raise
            else:
                away_since = None
                if status["state"] in TERMINAL_STATES:
                    yield f"{status['name']} {status['state']}"
                    if status["state"] != "JOB_STATE_SUCCEEDED":
                        raise JobFailed(f"{status['name']} ended in {status['state']}: {status['error']}")
                    return
                shown = {insert_id: at for insert_id, at in shown.items() if at >= newest - _OVERLAP_NS}
            # Docker goes through the whole log of a running container at every look.
            time.sleep(max(_POLL_SECONDS, time.monotonic() - begin))

    def _status(self) -> Any:
        from urllib.parse import quote

        return self.ask(f"/vertex_emulator/jobs/{quote(self.job.rpartition('/')[2], safe='')}", None)

    def _entries(self, status: Mapping[str, Any], since: int) -> Iterator[dict[str, Any]]:
        terms = [f'resource.labels.job_id="{status["log"]["job"]}"', f'timestamp>="{format_time(since)}"']
        trial = self.trial or status["log"]["trial"]
        if self.task is not None:
            terms.append(f'resource.labels.task_name="{self.task}"')
        if trial is not None:
            terms.append(f'labels."ml.googleapis.com/trial_id"="{trial}"')
        body: dict[str, Any] = {"filter": " AND ".join(terms), "pageSize": _PAGE}
        while True:
            reply = self.ask("/v2/entries:list", body)
            yield from reply.get("entries", [])
            if "nextPageToken" not in reply:
                return
            body["pageToken"] = reply["nextPageToken"]

    def _line(self, entry: Mapping[str, Any]) -> str:
        task = entry["resource"]["labels"]["task_name"]
        trial = entry["labels"].get("ml.googleapis.com/trial_id")
        payload = entry.get("jsonPayload")
        text = entry.get("textPayload", "") if payload is None else _message(payload)
        if not self.raw:
            text = text.translate(_VISIBLE)
        return f"{entry['timestamp'][:23]}Z {entry['severity']:<7} {task}{f' trial {trial}' if trial else ''}  {text}"


def _message(payload: Mapping[str, Any]) -> str:
    message = payload.get("message")
    return message if isinstance(message, str) and message else json.dumps(payload, ensure_ascii=False)
