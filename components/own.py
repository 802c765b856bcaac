"""What this package and Pulumi write beside a project: it is in no image, package or data, and declares nothing.

Otherwise each run would change what the next one is made of, and an image would have the emulator's secrets.
"""

import os
import re
from pathlib import Path

LOCK = "data.lock"
"""The lock of data, beside `Pulumi.yaml`."""
RUNS = "runs"
"""The folder of `vertex-training run`, beside `Pulumi.yaml`, with a folder for each run."""
_FOLDERS = frozenset({".emulator", ".pulumi", ".pulumi-state"})
"""At any depth, as other projects may lie there: data of emulators, and states of Pulumi's file backend."""
NAMES = _FOLDERS | {LOCK}
"""Of files and links, only those of these names may be own."""
_RUN = re.compile(r".+-\d{8}-\d{6}", re.DOTALL)
"""`NAME-DATE-TIME`; other folders in one of the name `runs` are the user's."""
DATA_VARIABLE = "VERTEX_EMULATOR_DATA"
"""Names the folder of an emulator that is not in `.emulator`."""


def emulator_data() -> Path:
    """Return where the emulator keeps jobs, logs and buckets: `.emulator` in the project, or `VERTEX_EMULATOR_DATA`."""
    return Path(os.environ.get(DATA_VARIABLE) or ".emulator").absolute()


class Own:
    """Tells what is own below a folder `top`. What leads to `top` does not matter: it was asked for by name.

    The lock is not own where one of the `texts` that say what is wanted names it.
    """

    def __init__(self, top: Path, *texts: Path) -> None:
        self._top = top
        self._texts = texts
        # Where it is not below the folder, this begins with "..", as no folder that is asked for does.
        data = os.path.relpath(os.path.realpath(emulator_data()), os.path.realpath(top))
        self._data_parent, self._data_name = (f"{data.rpartition('/')[0]}/".lstrip("/"), data.rpartition("/")[2])

    def has(self, folder: str, name: str) -> bool:
        """Whether an entry of a folder is own, with all below it. The folder is "" or ends with a slash."""
        if name in NAMES:
            return name != LOCK or (self._is_project(folder) and not self._names_lock())
        if folder.endswith(f"{RUNS}/") and _RUN.fullmatch(name):
            above, _, parent = folder[:-1].rpartition("/")
            return parent == RUNS and self._is_project(above)
        return name == self._data_name and folder == self._data_parent

    def covers(self, path: str) -> bool:
        """Whether a path, or a folder that it is in, is own."""
        parts = path.split("/")
        return any(self.has("".join(f"{part}/" for part in parts[:depth]), parts[depth]) for depth in range(len(parts)))

    def _is_project(self, folder: str) -> bool:
        return (self._top / folder / "Pulumi.yaml").is_file()

    def _names_lock(self) -> bool:
        return any(LOCK.encode() in text.read_bytes() for text in self._texts if text.is_file())
