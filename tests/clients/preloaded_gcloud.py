"""gcloud in processes that are forked from one which has imported it already: a command costs a third of the time.

gcloud's own start script runs this file in place of `gcloud.py`, by gcloud's Python, so nothing but the standard
library is imported.
"""

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path


class PreloadedGcloud:
    """A process that has imported gcloud, and runs its commands in an environment."""

    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        """Start it and wait until it is ready; `program` is gcloud's start script."""
        self._folder = tempfile.TemporaryDirectory(prefix="gcloud-")
        self._socket = Path(self._folder.name, "socket")
        here = Path(__file__)
        self._process = subprocess.Popen(
            [program, self._socket],
            cwd=here.parent,
            env={**environment, "CLOUDSDK_PYTHON_ARGS": f"-S {here.name}"},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "gcloud does not start"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        with (
            tempfile.NamedTemporaryFile("r") as output,
            tempfile.NamedTemporaryFile("r") as errors,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            connection.connect(str(self._socket))
            request = {"arguments": arguments, "output": output.name, "errors": errors.name}
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile() as answer:
                code = int(answer.readline())
            return subprocess.CompletedProcess(["gcloud", *arguments], code, output.read(), errors.read())

    def close(self) -> None:
        """End it, with all commands that still run."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._folder.cleanup()


def _serve(program: str, path: str) -> list[str]:
    """Answer requests for ever; return the arguments of gcloud in a process that is to run them."""
    sys.path[0] = str(Path(program).parent)
    del os.environ["CLOUDSDK_PYTHON_ARGS"]
    runpy.run_path(program)  # its module search path
    import_module("googlecloudsdk.gcloud_main")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork():
                    continue
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                with connection.makefile() as lines:
                    request = json.loads(lines.readline())
                if not (child := os.fork()):
                    break
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                connection.sendall(f"{code}\n".encode())
                os._exit(0)
    for file, number in ((os.devnull, 0), (request["output"], 1), (request["errors"], 2)):
        descriptor = os.open(file, os.O_RDWR)
        os.dup2(descriptor, number)
        os.close(descriptor)
    return list(request["arguments"])


if __name__ == "__main__":
    gcloud = sys.argv[1]
    sys.argv = [gcloud, *_serve(*sys.argv[1:])]
    runpy.run_path(gcloud, run_name="__main__")
