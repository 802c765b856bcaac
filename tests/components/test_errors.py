"""Errors of the machine in one line: of files, and of libraries whose errors are OSErrors by inheritance."""

import os
import shutil
import signal
import urllib.error

import docker
import pytest
import requests
from vertex_training import cli
from vertex_training.errors import os_error

ERRORS = [
    (FileNotFoundError(2, "No such file or directory", "a.yaml"), "a.yaml: No such file or directory"),
    (PermissionError(13, "Permission denied", "a", None, "b"), "a: Permission denied"),
    (OSError(28, "No space left on device"), "No space left on device"),
    (OSError(), "OSError"),
    (TimeoutError("timed\nout"), "timed out"),
    (shutil.Error([("runs/a", "out/a", "Permission denied"), ("b", "c", "d")]), "runs/a: Permission denied"),
    (requests.ConnectionError("refused"), "refused"),
    (docker.errors.APIError("400 Client Error for http+docker://", None, "unknown: FORM"), "unknown: FORM"),
    (urllib.error.URLError("unknown url type"), "<urlopen error unknown url type>"),
]


@pytest.mark.parametrize(("error", "text"), ERRORS, ids=lambda each: type(each).__name__)
def test_an_os_error_is_never_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: OSError, text: str
) -> None:
    def fail(*_: object) -> int:
        raise error

    assert os_error(error) == text
    monkeypatch.setattr(cli, "_prices", fail)
    assert cli.main(["prices"]) == 1
    assert capsys.readouterr().err == f"vertex-training: {text}\n"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_as_ctrl_c_does(monkeypatch: pytest.MonkeyPatch, sent: signal.Signals) -> None:
    ended = []

    def run(*_: object) -> int:
        try:
            os.kill(os.getpid(), sent)
        except KeyboardInterrupt:
            ended.append(sent)
            raise
        return 0

    monkeypatch.setattr(cli, "_doctor", run)
    before = signal.getsignal(sent)
    assert (cli.main(["doctor"]), ended) == (130, [sent])
    assert signal.getsignal(sent) == before
