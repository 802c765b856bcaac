"""The address of a running emulator: endpoint.json in its data folder, valid while the folder's lock is held.

components/runtime/emulator_discovery.py reads it by the same rule.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from vertex_emulator.data_folder import is_lock_held
from vertex_emulator.errors import EmulatorNotRunning, StartError


@dataclass(frozen=True)
class Endpoint:
    """Where an emulator listens, and which process it is.

    `token_file` is the file with the token that requests need, `None` where the kernel identifies the user.
    """

    pid: int
    host: str
    port: int
    url: str
    version: str
    token_file: str | None = None

    def read_token_or_empty_if_unneeded(self) -> str:
        """Return the token that requests need, "" if they need none. Raises EmulatorNotRunning."""
        if self.token_file is None:
            return ""
        try:
            return Path(self.token_file).read_text().strip()
        except OSError as error:
            raise EmulatorNotRunning(f"the token {self.token_file} cannot be read: {error.strerror}") from error

    def write(self, path: Path) -> None:
        """Write endpoint.json atomically. Raises StartError."""
        partial = path.with_suffix(".partial")
        try:
            partial.write_text(json.dumps(asdict(self)) + "\n")
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise StartError(f"{path} cannot be written: {error.strerror}") from error


def require_running_endpoint(data_path: Path) -> Endpoint:
    """Return the endpoint of the emulator that serves a data folder. Raises EmulatorNotRunning."""
    not_running = EmulatorNotRunning(
        f"no emulator is running on {data_path}; start one with: vertex-emulator start --data {data_path}"
    )
    if not is_lock_held(data_path / "lock"):
        raise not_running
    try:
        return Endpoint(**json.loads((data_path / "endpoint.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise EmulatorNotRunning(f"the emulator on {data_path} is just starting or stopping; try again") from error


def find_running_endpoint(data_path: Path) -> Endpoint | None:
    """Return the endpoint of the emulator that serves a data folder, `None` without one that is ready."""
    try:
        return require_running_endpoint(data_path)
    except EmulatorNotRunning:
        return None
