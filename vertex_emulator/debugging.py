"""The loopback ports on which debuggers reach replicas: one a replica, for the own user and root."""

import contextlib
import errno
import logging
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from vertex_emulator.database import Database
from vertex_emulator.database.records import RUNNING, Job, Replica
from vertex_emulator.errors import EmulatorError
from vertex_emulator.faults import DEFAULT_DEBUG_PORT
from vertex_emulator.http.connection import can_identify_users, is_trusted, peer_user
from vertex_emulator.replicas.debugger import CONTAINER_PORT, READY_SOCKET, debugged_replicas
from vertex_emulator.replicas.executor import Executor
from vertex_emulator.replicas.streams import STDERR, ExecStream

_HOST = "127.0.0.1"
_MAX_PORT = 65535
_CLOSED = (errno.EBADF, errno.EINVAL)
_RETRY_SECONDS = 0.1
_CHUNK = 1 << 16
# What every message of a debugger begins with (Debug Adapter Protocol, "Base Protocol"), and no request of a browser.
_MESSAGE_BEGIN = b"content-"
_MESSAGE_SECONDS = 120.0
_MAX_CLIENTS = 100  # of a replica, each with threads: a debugger has one connection for each process
_log = logging.getLogger("vertex_emulator.debugging")


@dataclass
class _Listener:
    """The listening socket of a replica; `replica` is its latest attempt."""

    replica: Replica
    socket: socket.socket
    places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_MAX_CLIENTS))


@dataclass
class DebugPorts:
    """The ports of all debugged replicas of an emulator, with a thread that accepts connections at each."""

    database: Database
    executor: Executor
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _listeners: dict[str, dict[str, _Listener]] = field(default_factory=dict)

    def open(self, job: Job) -> None:
        """Open a port for each debugged replica of a job unless it has one, and write the addresses to the job's log.

        Replica N gets the N-th port from that of the fault on, or the next free one.
        """
        replicas = debugged_replicas(job)
        if job.fault is None or not replicas:
            return
        with self._lock:
            listeners = self._listeners.setdefault(job.id, {})
            port = job.fault.port or DEFAULT_DEBUG_PORT
            for replica in replicas:
                if replica.task_name in listeners:
                    listeners[replica.task_name].replica = replica
                    continue
                listener = listeners[replica.task_name] = _Listener(replica, _listen(port))
                used_port = listener.socket.getsockname()[1]
                port = used_port + 1
                _start(self._accept, job.id, listener, name="debugger")
                waits = "; it waits for one" if job.fault.wait else ""
                with self.database.write() as transaction:
                    text = f"Attach a debugger to {replica.task_name} at {_HOST}:{used_port}{waits}."
                    transaction.jobs.log(job.id, text)

    def resume(self) -> None:
        """Open the ports of the jobs that run already, after a restart of the emulator."""
        with self.database.read() as transaction:
            jobs = [transaction.jobs.get(job_id) for job_id in transaction.jobs.unfinished()]
        for job in jobs:
            if job is not None and job.state == RUNNING:
                self.open(job)

    def close(self, job_id: str) -> None:
        """Close the ports of a job; do nothing if it has none."""
        with self._lock:
            listeners = self._listeners.pop(job_id, {})
        for listener in listeners.values():
            listener.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            listener.socket.close()

    def stop(self) -> None:
        """Close the ports of all jobs."""
        for job_id in list(self._listeners):
            self.close(job_id)

    def _accept(self, job_id: str, listener: _Listener) -> None:
        while True:
            try:
                client, _ = listener.socket.accept()
            except OSError as error:
                if error.errno in _CLOSED:
                    return
                time.sleep(_RETRY_SECONDS)  # the process has no room for another file now
                continue
            if not _is_own_user(client):
                _log.warning("a debugger of another user was refused at job %s", job_id)
                client.close()
                continue
            if not listener.places.acquire(blocking=False):
                _log.warning("a debugger was refused at job %s: there are %s already", job_id, _MAX_CLIENTS)
                client.close()
                continue
            _start(self._connect, client, job_id, listener, name="relay")

    def _connect(self, client: socket.socket, job_id: str, listener: _Listener) -> None:
        task = listener.replica.task_name
        try:
            if not _is_debugger(client):
                _log.warning("a client that is no debugger was refused at job %s", job_id)
                return
            relay(client, self.executor.connect_to_port(job_id, listener.replica, CONTAINER_PORT, READY_SOCKET))
        except (EmulatorError, OSError) as error:
            _log.warning("the debugger of %s of job %s is not connected: %s", task, job_id, error)
        finally:
            client.close()
            listener.places.release()


def _start(target: Callable[..., None], *args: object, name: str) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True, name=name)
    thread.start()
    return thread


def _listen(first_port: int) -> socket.socket:
    """Listen on the first free port from `first_port` on, else on any."""
    for candidate in range(first_port, _MAX_PORT + 1):
        with contextlib.suppress(OSError):
            return socket.create_server((_HOST, candidate))
    return socket.create_server((_HOST, 0))


def _is_own_user(client: socket.socket) -> bool:
    """Return whether the other end belongs to the emulator's user or to root; where no system tells, it may."""
    user_id = peer_user(client)
    return not can_identify_users() if user_id is None else is_trusted(user_id)


def _is_debugger(client: socket.socket) -> bool:
    """Return whether a client begins as a debugger does, and leave what it sends. Raises OSError.

    debugpy takes the head of any HTTP request for that of a message, and whatever page the user's browser shows can
    send one.
    """
    client.settimeout(_MESSAGE_SECONDS)
    begin = client.recv(len(_MESSAGE_BEGIN), socket.MSG_PEEK).lower()
    client.settimeout(None)
    return bool(begin) and _MESSAGE_BEGIN.startswith(begin)


def relay(client: socket.socket, stream: ExecStream) -> None:
    """Copy bytes in both directions until either end closes its connection; then both are closed."""

    def send() -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(_CHUNK):
                stream.write(data)
            stream.close_input()

    sender = _start(send, name="relay to container")
    try:
        with contextlib.suppress(OSError):
            for kind, data in stream.output():
                if kind == STDERR:
                    _log.warning("%s", data.decode(errors="replace").strip())
                else:
                    client.sendall(data)
    finally:
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        sender.join()
        stream.close()
