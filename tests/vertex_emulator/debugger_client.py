"""A debugger as editors are one: a client of the Debug Adapter Protocol."""

import json
import socket
from types import TracebackType
from typing import Any, Self

from tests.vertex_emulator.running import PATIENCE_SECONDS


class DebuggerClient:
    """A session with one process; messages are the protocol's."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = socket.create_connection((host, port), PATIENCE_SECONDS)
        self._stream = self._connection.makefile("rb")
        self._sent = 0
        self._unread: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, traceback: TracebackType | None) -> None:
        self._stream.close()
        self._connection.close()

    def attach(self, arguments: dict[str, Any], breakpoints: dict[str, list[int]]) -> None:
        """Attach as an editor does, with the lines of breakpoints by path; the program goes on."""
        self.call("initialize", adapterID="python", clientID="test", pathFormat="path", linesStartAt1=True)
        attached = self._send("attach", arguments)
        self.event("initialized")
        for path, lines in breakpoints.items():
            places = [{"line": line} for line in lines]
            self.call("setBreakpoints", source={"path": path}, breakpoints=places)
        self.call("configurationDone")
        self._response(attached)

    def call(self, command: str, **arguments: Any) -> Any:
        """The body of the answer to a request."""
        return self._response(self._send(command, arguments))

    def event(self, name: str) -> Any:
        """The body of the next event of that name."""
        return self._next(lambda message: message["type"] == "event" and message["event"] == name).get("body")

    def evaluate_where_it_stopped(self, expression: str) -> tuple[int, str]:
        """The line at which the program has stopped, and an expression's value there."""
        thread = self.event("stopped")["threadId"]
        frame = self.call("stackTrace", threadId=thread)["stackFrames"][0]
        result = self.call("evaluate", expression=expression, frameId=frame["id"])["result"]
        self.call("continue", threadId=thread)
        return frame["line"], result

    def _send(self, command: str, arguments: dict[str, Any]) -> int:
        self._sent += 1
        message = {"seq": self._sent, "type": "request", "command": command, "arguments": arguments}
        data = json.dumps(message).encode()
        self._connection.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        return self._sent

    def _response(self, number: int) -> Any:
        message = self._next(lambda found: found["type"] == "response" and found["request_seq"] == number)
        assert message["success"], message
        return message.get("body")

    def _next(self, is_wanted: Any) -> Any:
        for message in self._unread:
            if is_wanted(message):
                self._unread.remove(message)
                return message
        while not is_wanted(message := self._read()):
            self._unread.append(message)
        return message

    def _read(self) -> Any:
        length = 0
        while line := self._stream.readline().strip():
            length = int(line.partition(b": ")[2])
        assert length, f"the connection ends; unread: {self._unread}"
        return json.loads(self._stream.read(length))
