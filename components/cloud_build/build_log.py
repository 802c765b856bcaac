"""BuildLog: the lines that a build has written, as Cloud Logging has them."""

import re
import time
from collections.abc import Callable, Iterator

from vertex_api.client_errors import VertexError

from .build_and_log_client import CloudBuildClient

READ_INTERVAL_SECONDS = 10.0
"""Between two reads of one build's log: a project may read 60 times a minute (Cloud Logging's page on quotas)."""
ENTRIES_PER_READ = 1000
_MAX_READS_OF_END = 4
_RETRY_SECONDS = 3.0
"""Lines reach Cloud Logging some seconds after they are written, so the last ones are read until they stay the same."""
_STEP_PREFIX = re.compile(r'Step #\d+(?: - "[^"]*")?: ')


class BuildLog:
    """The log of one build. It is for people only: one that cannot be read is reported once and fails nothing.

    `wait` is called with the seconds between two reads of the last lines.
    """

    def __init__(
        self,
        client: CloudBuildClient,
        project: str,
        build_id: str,
        report: Callable[[str], None],
        wait: Callable[[float], object],
    ) -> None:
        self._client, self._project, self._build_id = client, project, build_id
        self._report, self._wait = report, wait
        self._read_ids: set[str] = set()
        self._next_read = 0.0
        self._is_readable = True

    def iterate_new_lines_if_due(self, *, is_last_read: bool = False) -> Iterator[str]:
        """Yield the lines that were not yielded before. Reads nothing if it has just done so, but for the last read."""
        if time.monotonic() < self._next_read and not is_last_read:
            return
        self._next_read = time.monotonic() + READ_INTERVAL_SECONDS
        for id_, line in self._fetch_newest_ids_and_lines_or_report_once(ENTRIES_PER_READ):
            if id_ not in self._read_ids:
                self._read_ids.add(id_)
                yield line

    def read_last_lines_until_stable(self, count: int) -> list[str]:
        """Return the last lines, once two reads in a row are equal; none if the log cannot be read."""
        lines: list[str] = []
        for _ in range(_MAX_READS_OF_END):
            latest = [line for _, line in self._fetch_newest_ids_and_lines_or_report_once(count)]
            if not self._is_readable or (latest and latest == lines):
                break
            lines = latest
            self._wait(_RETRY_SECONDS)
        return lines

    def _fetch_newest_ids_and_lines_or_report_once(self, count: int) -> list[tuple[str, str]]:
        """Return ids and lines of the newest entries, in the order in which they were written.

        The first failure is reported. After it, nothing is read.
        """
        if not self._is_readable:
            return []
        try:
            entries = self._client.list_newest_log_entries(self._project, self._build_id, count)
        except VertexError as error:
            self._is_readable = False
            self._report(f"the log of its build cannot be read: {error}; your account needs roles/logging.viewer")
            return []
        lines = [
            (str(entry.get("insertId")), _STEP_PREFIX.sub("", str(entry.get("textPayload", "")))) for entry in entries
        ]
        return lines[::-1]
