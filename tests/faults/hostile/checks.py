"""The checks of every answer of the emulator."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.faults.hostile.process_watch import ProcessWatch
from tests.faults.hostile.report import Report

_NOTED_SECONDS = 1.0
_MAX_JSON_BYTES = 1 << 20


class AnswerChecks:
    """Checks that note in a report what is wrong; no answer may contain one of the `secrets`."""

    def __init__(self, report: Report, watch: ProcessWatch, secrets: Sequence[bytes]) -> None:
        self._report, self._watch, self._secrets = report, watch, secrets

    def check_time(self, started: float, what: str, max_seconds: float) -> None:
        """Check that an answer has come in time, without the time in which the machine gave a thread no processor."""
        seconds = time.monotonic() - started
        self._report.max_seconds = max(self._report.max_seconds, seconds)
        if seconds > min(max_seconds, _NOTED_SECONDS):
            cpu, wait = self._watch.measure_cpu_and_wait_since(started)
            load = Path("/proc/loadavg").read_text().split()[0]
            text = f"{seconds:.2f} s (processor {cpu:.2f}, waited for it {wait:.2f}, load {load}): {what}"
            self._report.slow.append(text)
            if seconds - wait > max_seconds:
                self._report.wrong.append(f"slow: {text}")

    def check_answer(self, line: str, body: bytes, status: int, media_type: str, content: bytes) -> Any:
        """Check an answer to a request with this first line and body; return its JSON, `None` if it has none."""
        self._report.statuses["501" if status == 501 else f"{status // 100}xx"] += 1
        if status >= 500 and status != 501:
            self._report.wrong.append(f"{status}: {line}: {content[:300]!r}; body {body[:500]!r}")
        if any(secret in content for secret in self._secrets):
            self._report.wrong.append(f"disclosed: {line}")
        if media_type.partition(";")[0] != "application/json" or not content or len(content) > _MAX_JSON_BYTES:
            return None
        try:
            return json.loads(content)
        except ValueError:
            self._report.wrong.append(f"no JSON: {line}: {content[:300]!r}")
            return None
