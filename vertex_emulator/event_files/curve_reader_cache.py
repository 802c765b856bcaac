"""The readers of the folders of event files that were asked for last."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from vertex_emulator.event_files.curve_reader import MAX_CURVES, CurveReader
from vertex_emulator.gcs.files import BucketTree

MAX_READERS = 128
MAX_BYTES_PER_READ = 2_000_000  # some 45,000 points, 0.3 s


class CurveReaderCache:
    """Readers by the URIs of their folders, for one request at a time.

    All together hold `MAX_CURVES` at most, of which each takes 14 kB once it has many points.
    """

    def __init__(self, tree: BucketTree) -> None:
        self._tree = tree
        self._readers: OrderedDict[str, CurveReader] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def lock_and_update_readers(self, folder_uris: Sequence[str]) -> Iterator[list[CurveReader]]:
        """Read what is new in at most `MAX_READERS` folders, and yield their readers, to be used inside the block.

        All together read `MAX_BYTES_PER_READ` at most; `has_unread_data` of a reader says whether there is more.
        """
        with self._lock:
            remaining = MAX_BYTES_PER_READ
            readers = [self._get_or_create_reader(uri) for uri in folder_uris]
            for reader in readers:
                max_curves = reader.curve_count + MAX_CURVES - sum(each.curve_count for each in readers)
                remaining -= reader.read_new_data_and_count_bytes(remaining, max_curves)
            while len(self._readers) > MAX_READERS or self._holds_too_many_curves(len(readers)):
                self._readers.popitem(last=False)
            yield readers

    def _holds_too_many_curves(self, used: int) -> bool:
        """Return whether there are others than the `used` latest readers, and all together hold too many curves."""
        return len(self._readers) > used and sum(each.curve_count for each in self._readers.values()) > MAX_CURVES

    def _get_or_create_reader(self, folder_uri: str) -> CurveReader:
        reader = self._readers.setdefault(folder_uri, CurveReader(self._tree, folder_uri))
        self._readers.move_to_end(folder_uri)
        return reader
