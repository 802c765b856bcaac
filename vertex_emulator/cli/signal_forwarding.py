"""A child process that gets the signals of this one while it runs."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from vertex_emulator.errors import CommandNotRun

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT)


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
        self._handlers = {number: signal.signal(number, self._forward_signal_or_exit) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def run_child(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run the child to its end and return its exit code, negative for a signal. Raises CommandNotRun.

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
        return -signal.SIGINT if self._was_interrupted and exit_code == -(self._interrupt_signal or 0) else exit_code

    def _forward_signal_or_exit(self, number: int, _frame: FrameType | None) -> None:
        if not self._is_starting:
            raise SystemExit(128 + number)
        if self._interrupt_signal is None and number in _OF_TERMINALS and _is_in_terminal_foreground():
            return  # the terminal has sent it to the child as well
        if self._interrupt_signal is not None and number == signal.SIGINT:
            number, self._was_interrupted = self._interrupt_signal, True
        if self._child is None:
            self._pending.append(number)
        else:
            self._child.send_signal(number)


def _is_in_terminal_foreground() -> bool:
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
