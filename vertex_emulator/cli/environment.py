"""The commands `env` and `exec`: what leads Google's clients to an emulator, printed or given to another command."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from vertex_api import locks
from vertex_api.emulator import Address
from vertex_emulator import programs
from vertex_emulator.cli import emulator
from vertex_emulator.cli.output import note
from vertex_emulator.clients import endpoints
from vertex_emulator.data_folder import DataFolder, require_endpoint
from vertex_emulator.errors import CommandNotRun, EmulatorError
from vertex_emulator.inside.authority import ADDRESSES, GRPC, NAMES, REQUESTS, Authority
from vertex_emulator.times import now_ns, parse_time

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT)
_PROXIES = ("http", "https", "grpc")
# The Python SDK reads no variable for its endpoint (google-cloud-aiplatform 2.x, initializer.py).
_PYTHON = """\
{imports}
from google.cloud import aiplatform
aiplatform.init(project={project!r}, location={region!r}, staging_bucket="gs://staging",
                {endpoint}, credentials={credentials})"""
_ANONYMOUS = ("from google.auth.credentials import AnonymousCredentials", "AnonymousCredentials()")
_TOKEN = (
    "from pathlib import Path\nfrom google.oauth2.credentials import Credentials",
    "Credentials(Path({!r}).read_text().strip())",
)


def render(root: Path, project: str, region: str, as_json: bool = False, has_page_link: bool = True) -> Iterator[str]:
    """Render shell lines for `eval`, with the code for the Python SDK as comments, or a JSON object of the variables.

    `has_page_link` adds the page's link where it holds the emulator's token. Raises EmulatorNotRunning before the first
    line.
    """
    endpoint = require_endpoint(root)
    token, token_file = emulator.token(endpoint), endpoint.token_file
    found = variables(endpoint, root, project, region)
    if as_json:
        yield json.dumps(found, indent=2)
        return
    for name, value in found.items():
        yield f"export {name}={shlex.quote(value)}"
    yield "# Google's Python SDK reads no endpoint from the environment (`vertex-emulator exec` sets it all the same):"
    imports, credentials = _TOKEN if token_file else _ANONYMOUS
    arguments = ", ".join(f"{name}={value!r}" for name, value in sdk_endpoint(endpoint).items())
    values = {"imports": imports, "credentials": credentials.format(token_file), "endpoint": arguments}
    for line in _PYTHON.format(project=project, region=region, **values).splitlines():
        yield f"#   {line}"
    if token and has_page_link:
        yield f"# The page, for your browser only: {endpoint.url}/?{urlencode({'token': token})}"


def grpc_address(endpoint: Address) -> str | None:
    """Return where clients of gRPC find an emulator: a host that its certificate is for, and the port; None without."""
    host = urlsplit(endpoint.url).hostname
    return endpoint.url.removeprefix("http://") if host in (*NAMES, *ADDRESSES) else None


def sdk_endpoint(endpoint: Address) -> dict[str, str]:
    """Return the arguments of `aiplatform.init` that lead to an emulator: over gRPC, if its certificate is for it."""
    address = grpc_address(endpoint)
    return {"api_endpoint": address} if address else {"api_endpoint": endpoint.url, "api_transport": "rest"}


def variables(endpoint: Address, root: Path, project: str, region: str) -> dict[str, str]:
    """Return the variables by which gcloud and Google's libraries find the emulator that serves a data folder."""
    data = DataFolder(root.absolute())
    data.check_gcloud()
    url, token_file = endpoint.url, endpoint.token_file
    authorization = (
        {"CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": token_file} if token_file else {"CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true"}
    )
    host = urlsplit(url).hostname or ""
    found = {
        **endpoints(url),
        **authorization,
        "CLOUDSDK_CONFIG": str(data.gcloud),
        "CLOUDSDK_CORE_PROJECT": project,
        "CLOUDSDK_AI_REGION": region,
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "GOOGLE_CLOUD_PROJECT": project,
        "GOOGLE_CLOUD_REGION": region,
        "VERTEX_EMULATOR_ADDRESS": grpc_address(endpoint) or "",
    }
    if found["VERTEX_EMULATOR_ADDRESS"]:
        # The SDK goes from gRPC to REST by itself, at an `init` without a project.
        found |= dict.fromkeys((GRPC, REQUESTS), str(Authority(data.certificate, data.trusted).bundle()))
    proxies = getproxies()
    if not proxies.keys().isdisjoint(_PROXIES) and not proxy_bypass(host):
        direct = ",".join(part for part in (proxies.get("no"), host) if part)
        found |= {"NO_PROXY": direct, "no_proxy": direct}
    return found


def execute(root: Path, project: str, region: str, command: Sequence[str]) -> int:
    """Run a command, with or without `--` before it, with the emulator of a data folder; return its exit code.

    Signals are passed on to the command. Raises CommandNotRun.
    """
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        raise CommandNotRun("which command? Write it after --, as in: vertex-emulator exec -- pytest", 2)
    if advice := _local_package(command):
        raise CommandNotRun(advice, 2)
    executable = shutil.which(command[0])
    if executable is None:
        if os.sep in command[0] and Path(command[0]).exists():
            raise CommandNotRun(f"{command[0]} is not executable", 126)
        raise CommandNotRun(f"{command[0]} is not found", 127)
    data = DataFolder(root.absolute())
    startup_folder = str(programs.startup_folder("google_sdk"))
    with SignalForwarding() as signals, _running(data) as endpoint:
        environment = {
            **os.environ,
            **variables(endpoint, data.root, project, region),
            "VERTEX_EMULATOR_DATA": str(data.root),
            "PYTHONPATH": os.pathsep.join(filter(None, [startup_folder, os.environ.get("PYTHONPATH")])),
        }
        begun = now_ns()
        exit_code = signals.run([executable, *command[1:]], environment)
        if exit_code:
            _name_log(endpoint, root, begun)
        return exit_code


def _local_package(command: Sequence[str]) -> str | None:
    """Return what to do at home in place of a command of gcloud that builds an image and pushes it to a registry."""
    if Path(command[0]).name != "gcloud" or "custom-jobs" not in command or "create" not in command:
        return None
    if not any("local-package-path=" in argument for argument in command):
        return None
    return (
        "gcloud would build this local package and push the image to gcr.io, and no registry is at home: build it "
        "with `gcloud ai custom-jobs local-run --output-image-uri=NAME …` or `docker build -t NAME .`, then create the "
        "job with container-image-uri=NAME in place of local-package-path, script and executor-image-uri; or declare a "
        "package (`vertex-training docs autopackaging`)"
    )


def failed_jobs(endpoint: Address, since_ns: int) -> list[str]:
    """Return the ids of jobs that were created since a time and have failed, the newest first. Raises EmulatorError."""
    failed = emulator.send(endpoint, "/vertex_emulator/page/jobs?state=failed")["jobs"]
    return [each["id"] for each in failed if (parse_time(each["createTime"]) or 0) >= since_ns]


def _name_log(endpoint: Address, root: Path, since_ns: int) -> None:
    """Say where the log is of the last job that failed, if one did: the link in the job's error leads to Google."""
    with contextlib.suppress(EmulatorError):
        for job in failed_jobs(endpoint, since_ns)[:1]:
            log = shlex.join(["vertex-emulator", "logs", job, "--data", str(root)])
            note(f"a job failed; its log: {log}")


@contextlib.contextmanager
def _running(data: DataFolder) -> Iterator[Address]:
    """Yield the endpoint of an emulator. One that is started here is stopped when no `exec` uses it any more."""
    try:
        DataFolder.open(data.root)
        lock = locks.open_lock(data.root / "exec.lock")
    except EmulatorError as error:
        raise CommandNotRun(str(error), 125) from error
    with lock:
        locks.take(lock, shared=True)
        try:
            started = emulator.start(data.root)
        except EmulatorError as error:
            raise CommandNotRun(str(error), 125) from error
        try:
            yield started.endpoint
        finally:
            if started.process is not None:
                _wait_for_others(lock)
                _stop(data.root, started.endpoint)
                started.process.wait()


def _wait_for_others(lock: IO[str]) -> None:
    if not locks.try_take(lock):
        note("another `vertex-emulator exec` uses the emulator; waiting for its end")
        locks.take(lock)


def _stop(root: Path, endpoint: Address) -> None:
    try:
        if unfinished := emulator.count_unfinished(endpoint):
            jobs = "1 job has" if unfinished == 1 else f"{unfinished} jobs have"
            note(f"{jobs} not ended; containers keep running, and the next start finds them")
        emulator.stop(root)
    except EmulatorError as error:
        note(str(error))


class SignalForwarding:
    """Signals of this process go to its child while that runs; before, they end this process in order.

    With `interrupt_signal`, a Ctrl-C at the terminal does not reach the child, which gets that signal for each SIGINT.
    """

    def __init__(self, interrupt_signal: int | None = None) -> None:
        self._interrupt_signal = interrupt_signal
        self._was_interrupted = False
        self._child: subprocess.Popen[bytes] | None = None
        self._is_starting = False
        self._pending: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> "SignalForwarding":
        # One that is ignored, as by nohup, stays ignored in the child.
        numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._handlers = {number: signal.signal(number, self._forward) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run the child to its end and return its exit code, 128 + N for signal N. Raises CommandNotRun.

        A child that its `interrupt_signal` ends has been ended by SIGINT.
        """
        self._is_starting = True
        try:
            group = None if self._interrupt_signal is None else 0  # 0 is one of its own, in the background
            child = self._child = subprocess.Popen(command, env=environment, process_group=group)
        except OSError as error:
            raise CommandNotRun(f"{command[0]} cannot be executed: {error.strerror}", 126) from error
        for number in self._pending:
            child.send_signal(number)
        exit_code = child.wait()
        if self._was_interrupted and exit_code == -(self._interrupt_signal or 0):
            exit_code = -signal.SIGINT
        return exit_code if exit_code >= 0 else 128 - exit_code

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if not self._is_starting:
            raise SystemExit(128 + number)
        if self._interrupt_signal is None and number in _OF_TERMINALS and _is_in_foreground():
            return  # the terminal has sent it to the child as well
        if self._interrupt_signal is not None and number == signal.SIGINT:
            number, self._was_interrupted = self._interrupt_signal, True
        if self._child is None:
            self._pending.append(number)
        else:
            self._child.send_signal(number)


def _is_in_foreground() -> bool:
    """Return whether a Ctrl-C at the terminal reaches this process and its children."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
