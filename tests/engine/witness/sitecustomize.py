"""Put first on PYTHONPATH, this writes down what each Python process of a test connects to, imports and waits for."""

import asyncio
import atexit
import json
import os
import pathlib
import signal
import sys
from typing import Any

_connected: list[str] = []
_waited_for: list[int] = []
_wait: Any = asyncio.wait


def _witness(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        _connected.append(str(arguments[1]))
    elif event == "subprocess.Popen":
        _connected.append(f"process {arguments[0]}")


async def _counted(futures: Any, **options: Any) -> Any:
    futures = list(futures)
    _waited_for.append(len(futures))
    return await _wait(futures, **options)


def _write() -> None:
    report = {
        "argv": sys.argv,
        "connected": _connected,
        "modules": sorted(sys.modules),
        "waited_for": sum(_waited_for),
    }
    pathlib.Path(os.environ["WITNESS"], f"{os.getpid()}.json").write_text(json.dumps(report))


asyncio.wait = _counted
sys.addaudithook(_witness)
atexit.register(_write)
# Pulumi ends its providers with this signal.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
