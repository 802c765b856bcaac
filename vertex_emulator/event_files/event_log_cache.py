"""The event logs that were read last."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from vertex_emulator.event_files.event_log import EventLog
from vertex_emulator.gcs.bucket_tree import BucketTree

MAX_LOGS = 128
MAX_BYTES_PER_READ = 2_000_000  # some 45,000 points, 0.3 s


class EventLogCache:
    """Logs by the URIs of their folders, for one request at a time."""

    def __init__(self, tree: BucketTree) -> None:
        self._tree = tree
        self._logs: OrderedDict[str, EventLog] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def read_logs(self, folder_uris: Sequence[str]) -> Iterator[list[EventLog]]:
        """Yield the logs of at most `MAX_LOGS` folders, after reading what is new, to be used inside the block.

        All together read `MAX_BYTES_PER_READ` at most; `has_unread_data` of a log says whether there is more.
        """
        with self._lock:
            remaining = MAX_BYTES_PER_READ
            logs = [self._get_or_add(uri) for uri in folder_uris]
            for log in logs:
                remaining -= log.read_more(remaining)
            while len(self._logs) > MAX_LOGS:
                self._logs.popitem(last=False)
            yield logs

    def _get_or_add(self, uri: str) -> EventLog:
        log = self._logs.setdefault(uri, EventLog(self._tree, uri))
        self._logs.move_to_end(uri)
        return log
