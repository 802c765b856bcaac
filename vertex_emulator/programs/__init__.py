"""Programs that the emulator hands to other Pythons, in containers and below `vertex-emulator exec`.

Each is a file that imports nothing of the emulator, and runs in any Python from 3.7 on. `package` and `relay` are
passed as source. `debugger` and `google_sdk` are folders with a `sitecustomize.py`, which Python runs at its start
where they come first on PYTHONPATH.
"""

from functools import cache
from pathlib import Path

# Not every image has its Python as python3; $0 is the source of the program.
_LAUNCH = 'exec "$(command -v python3 || command -v python || echo python3)" {options}-c "$0" "$@"'


@cache
def command(program: str, options: str = "") -> tuple[str, ...]:
    """Return the command that runs a program in a container; its arguments follow. `options` are Python's."""
    source = Path(__file__).with_name(f"{program}.py").read_text()
    return "/bin/sh", "-c", _LAUNCH.format(options=f"{options} " if options else ""), source


def startup_folder(name: str) -> Path:
    """Return the folder of a `sitecustomize.py`."""
    return Path(__file__).with_name(name)
