"""Clients that send random requests and check the answers."""

import contextlib
import http.client
import random
import socket
import threading
import time

import requests

from tests.faults.hostile.checks import AnswerChecks
from tests.faults.hostile.known_names import KnownNames
from tests.faults.hostile.report import Report
from tests.faults.hostile.request_source import MAX_SECONDS, Request, RequestSource
from tests.vertex_emulator.running import RunningEmulator

SILENCE_SECONDS = 20.0
_LARGE_BYTES = 64 << 10
_READ_BYTES = 8 << 20
_MAX_PAUSE_SECONDS = 0.03
_HEALTH_SECONDS = 0.2


class HostileClients:
    """Clients of one emulator, by dice with a seed, until `is_over` is set."""

    def __init__(
        self, emulator: RunningEmulator, seed: int, report: Report, checks: AnswerChecks, is_over: threading.Event
    ) -> None:
        host, port = emulator.url.removeprefix("http://").split(":")
        self._address, self._url = (host, int(port)), emulator.url
        self._seed, self._report, self._checks, self._is_over = seed, report, checks, is_over
        self._known = KnownNames()
        # The emulator works on one large body at a time (docs/security.md), so only the first one has to be in time.
        self._large_turn = threading.Lock()

    def send_requests(self, number: int) -> None:
        """Be the client with a number."""
        dice = random.Random(f"{self._seed} {number}")
        source = RequestSource(dice, self._known)
        while not self._is_over.is_set():
            request = source.build_request()
            with self._large_turn if len(request.body) > _LARGE_BYTES else contextlib.nullcontext():
                self._send(request)
            time.sleep(dice.uniform(0, _MAX_PAUSE_SECONDS))

    def ask_health(self) -> None:
        """Ask for the emulator's health all the time; that is quick whatever the others do."""
        with requests.Session() as session:
            session.trust_env = False
            while not self._is_over.wait(_HEALTH_SECONDS):
                started = time.monotonic()
                reply = session.get(f"{self._url}/healthz", timeout=SILENCE_SECONDS)
                self._report.max_health_seconds = max(self._report.max_health_seconds, time.monotonic() - started)
                self._checks.check_time(started, "healthz", MAX_SECONDS / 2)
                if reply.status_code != 200:
                    self._report.wrong.append(f"healthz answers {reply.status_code}")

    def _send(self, request: Request) -> None:
        with socket.create_connection(self._address, timeout=SILENCE_SECONDS) as connection:
            with contextlib.suppress(OSError):  # it may answer and close before it has read a long body
                connection.sendall(request.head + request.body)
            if not request.is_whole:
                self._is_over.wait(request.pause)
                self._report.statuses["left"] += 1
                return
            self._receive(connection, request)

    def _receive(self, connection: socket.socket, request: Request) -> None:
        started = time.monotonic()
        if request.can_be_endless:
            connection.settimeout(MAX_SECONDS / 2)
        answer = http.client.HTTPResponse(connection, method=request.line.partition(" ")[0])
        with contextlib.closing(answer):
            try:
                answer.begin()
                media_type = answer.getheader("content-type", "")
                content = answer.read1(100) if media_type.startswith("text/event-stream") else answer.read(_READ_BYTES)
            except TimeoutError:
                self._report.statuses["left"] += 1
                if not request.can_be_endless:
                    self._report.wrong.append(f"no answer within {SILENCE_SECONDS:.0f} s: {request.line}")
                return
            except (OSError, http.client.HTTPException):
                self._report.statuses["cut"] += 1
                return
        self._checks.check_time(started, request.line, request.max_seconds)
        reply = self._checks.check_answer(request.line, request.body, answer.status, media_type, content)
        self._known.learn(answer.getheader("x-guploader-uploadid"), reply)
