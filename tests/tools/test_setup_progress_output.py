"""What is written to a terminal, and what to a log."""

import io

from tools.setup.progress_output import ProgressOutput


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_shows_progress_every_30_seconds() -> None:
    stream = io.StringIO()
    show_progress = ProgressOutput(stream).create_seconds_callback("building")
    for tenths in range(0, 650, 5):
        show_progress(tenths / 10)
    assert stream.getvalue().splitlines() == ["building ... 3 s", "building ... 30 s", "building ... 60 s"]


def test_the_result_overwrites_progress_on_a_terminal() -> None:
    stream = Terminal()
    output = ProgressOutput(stream)
    show_progress = output.create_seconds_callback("building")
    show_progress(1.0)
    show_progress(2.0)
    output.write_line("built")
    assert stream.getvalue() == "\r\033[Kbuilding ... 1 s\r\033[Kbuilding ... 2 s\r\033[Kbuilt\n"


def test_progress_never_wraps_on_a_terminal() -> None:
    stream = Terminal()
    ProgressOutput(stream).create_seconds_callback("x" * 500)(1.0)
    assert len(stream.getvalue().removeprefix("\r\033[K")) < 500
