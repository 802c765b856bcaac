"""An emulator for as long as a block of code runs."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vertex_emulator.cli.detached_emulator import start_emulator_unless_running
from vertex_emulator.cli.status_stop_reset_commands import (
    remove_containers_and_data_except_buckets,
    stop_emulator_and_describe,
)
from vertex_emulator.removal import remove_tree
from vertex_emulator.testing.project_with_client_arguments import EmulatorProject


@contextmanager
def run_emulator(data_path: Path | None = None) -> Iterator[EmulatorProject]:
    """Run an emulator for the block; afterwards, stop it and remove its containers.

    Its data folder is `data_path`, whose buckets stay, or a temporary one. Raises StartError if it does not start,
    without Docker for example, and EmulatorError if it does not stop.
    """
    folder = Path(tempfile.mkdtemp(prefix="vertex-emulator-")) if data_path is None else data_path.absolute()
    try:
        emulator = start_emulator_unless_running(folder)
        try:
            yield EmulatorProject(folder)
        finally:
            if emulator.process is not None:
                stop_emulator_and_describe(folder, only_if_idle=False)
                emulator.process.wait()
                remove_containers_and_data_except_buckets(folder)
    finally:
        if data_path is None:
            # Files that containers have written as root stay where this user may not remove them.
            with suppress(OSError):
                remove_tree(folder)
