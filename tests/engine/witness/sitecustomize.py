"""Put first on PYTHONPATH, this writes down what each Python process of a test connects to and imports."""

import atexit
import json
import os
import pathlib
import signal
import sys
from typing import Any

_connected: list[str] = []


def _witness(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        _connected.append(str(arguments[1]))
    elif event == "subprocess.Popen":
        _connected.append(f"process {arguments[0]}")


def _write() -> None:
    report = {"argv": sys.argv, "connected": _connected, "modules": sorted(sys.modules)}
    pathlib.Path(os.environ["WITNESS"], f"{os.getpid()}.json").write_text(json.dumps(report))


sys.addaudithook(_witness)
atexit.register(_write)
# Pulumi ends its providers with this signal.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
