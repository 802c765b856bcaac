"""The last exception of a Python program, read from its log: which one, and where in the user's code."""

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from vertex_training.jobs.tracebacks import last_exception

HEADER = "Traceback (most recent call last):"
RAISE = "def load():\n  raise ValueError('no data')\n"
SAID = "ValueError: no data (/app/train.py:2, in load)"
RETURNED = "def caught(error):\n  try:\n    raise error\n  except Exception as caught:\n    return caught\n"


def printed(source: str, file: str = "/app/train.py", **names: Any) -> list[str]:
    """Return what Python prints of the error of a program."""
    try:
        exec(compile(source, file, "exec"), names)
    except Exception as error:  # noqa: BLE001 (whatever the program raises)
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        return "".join(traceback.format_exception(error)).splitlines()
    raise AssertionError


def imported(file: str) -> Callable[[], None]:
    """Return a function of another file that fails."""
    names: dict[str, Any] = {}
    exec(compile("def call():\n  raise KeyError('x')", file, "exec"), names)
    return names["call"]  # type: ignore[no-any-return]


def called(file: str) -> str | None:
    return last_exception(printed("call()", call=imported(file)))


def test_the_exception_has_its_place() -> None:
    assert last_exception(printed(f"{RAISE}load()")) == SAID
    assert last_exception(printed("assert False")) == "AssertionError (/app/train.py:1)"
    assert last_exception(printed("import nix.da")) == "ModuleNotFoundError: No module named 'nix' (/app/train.py:1)"
    local = last_exception(printed("def f():\n  class Bad(Exception): pass\n  raise Bad('x')\nf()", __name__="m"))
    assert local == "m.f.<locals>.Bad: x (/app/train.py:3, in f)"


@pytest.mark.parametrize(
    "file",
    [
        "/usr/local/lib/python3.11/site-packages/torch/nn.py",
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/opt/conda/lib/python3.10/json/decoder.py",
        "<frozen importlib._bootstrap>",
        "/usr/local/bin/torchrun",
    ],
)
def test_files_of_others_are_not_the_user_s(file: str) -> None:
    assert called(file) == "KeyError: 'x' (/app/train.py:1)"


@pytest.mark.parametrize("file", ["<string>", "/app/bin/train.py", "/gcs/b/lib/load.py"])
def test_other_files_are_the_user_s(file: str) -> None:
    assert called(file) == f"KeyError: 'x' ({file}:2, in call)"


def test_an_installed_package_is_the_user_s() -> None:
    folder = "/root/.local/lib/python3.10/site-packages"
    lines = printed("call()", f"{folder}/trainer/task.py", call=imported(f"{folder}/trainer/data.py"))
    assert last_exception(lines) == f"KeyError: 'x' ({folder}/trainer/data.py:2, in call)"
    lines = printed("call()", f"{folder}/trainer/task.py", call=imported(f"{folder}/numpy/core.py"))
    assert last_exception(lines) == f"KeyError: 'x' ({folder}/trainer/task.py:1)"


@pytest.mark.parametrize(
    ("link", "shown"), [("from error", ", from ValueError: no data (/app/train.py:2, in load)"), ("", "")]
)
def test_a_chain_shows_its_direct_cause(link: str, shown: str) -> None:
    chained = f"{RAISE}try:\n  load()\nexcept ValueError as error:\n  raise RuntimeError('bad') {link}"
    assert last_exception(printed(chained)) == f"RuntimeError: bad (/app/train.py:6){shown}"


def test_a_cause_of_libraries_alone_is_left_out() -> None:
    lines = [HEADER, '  File "/usr/lib/python3.11/socket.py", line 7, in connect', "OSError: refused", ""]
    linked = ["The above exception was the direct cause of the following exception:", ""]
    assert last_exception([*lines, *linked, *printed(f"{RAISE}load()")]) == SAID


def test_a_syntax_error_needs_no_traceback() -> None:
    lines = ['  File "/app/train.py", line 3', "    x = = 2", "        ^", "SyntaxError: invalid syntax"]
    assert last_exception(lines) == "SyntaxError: invalid syntax (/app/train.py:3)"
    within = [HEADER, '  File "/app/main.py", line 1, in <module>', "    import train", *lines]
    assert last_exception(within) == "SyntaxError: invalid syntax (/app/train.py:3)"


def test_a_group_shows_its_exceptions() -> None:
    inner = "ExceptionGroup('inner', [caught(KeyError('k'))])"
    many = f"{RETURNED}raise ExceptionGroup('many', [caught(ValueError('a')), TypeError('b'), {inner}])"
    assert last_exception(["| epoch | loss |", *printed(many), "| epoch: 3 |"]) == (
        "ExceptionGroup: many (3 sub-exceptions) (/app/train.py:6); "
        "ValueError: a (/app/train.py:3, in caught); TypeError: b; KeyError: 'k' (/app/train.py:3, in caught)"
    )
    five = printed("raise ExceptionGroup('five', [*map(ValueError, 'abcde')])")
    assert str(last_exception([*five, "done"])).endswith("; ValueError: a; ValueError: b; ValueError: c; and 2 more")


def test_lines_after_and_amid_a_traceback_pass() -> None:
    lines = printed(f"{RAISE}load()")
    amid = [*lines[:-1], "INFO: saved", "loss: 0.3", "epoch 3", lines[-1]]
    assert last_exception(["starts", *amid, "a note", "ERROR: gone", "wandb: waiting"]) == SAID
    assert last_exception([f"ERROR:root:{HEADER}", *lines[1:]]) == SAID
    assert last_exception(["\n".join(lines)]) == SAID
    assert last_exception(lines[2:]) == SAID


def test_ranks_do_not_mix() -> None:
    lines = printed(f"{RAISE}load()")
    mixed = [f"[rank{rank}]: {line}" for line in lines[1:] for rank in (0, 1)]
    assert last_exception([f"[rank0]: {HEADER}", *mixed, "W: the other ranks end"]) == SAID


def test_a_launcher_s_own_traceback_hides_no_trainer_s() -> None:
    launcher = [HEADER, '  File "/usr/local/bin/torchrun", line 8, in <module>', "ChildFailedError: train.py FAILED"]
    assert last_exception([*printed(f"{RAISE}load()"), *launcher]) == SAID
    assert last_exception(launcher) == "ChildFailedError: train.py FAILED (/usr/local/bin/torchrun:8)"


def test_a_worker_s_traceback_within_a_message_counts() -> None:
    outer = [HEADER, '  File "/app/train.py", line 9, in <module>', "ValueError: Caught ValueError in worker 0."]
    assert last_exception([*outer, f"Original {HEADER}", *printed(f"{RAISE}load()")[1:]]) == SAID


def test_details_of_google_s_errors_are_left_out() -> None:
    said, frame = "google.api_core.exceptions.Forbidden: 403 denied", '  File "/app/train.py", line 1, in <module>'
    lines = [HEADER, frame, f'{said} [reason: "IAM_PERMISSION_DENIED"', "]"]
    assert last_exception(lines) == f"{said} (/app/train.py:1)"


@pytest.mark.parametrize("lines", [[], ["ValueError: no data"], [HEADER], ["  File names", "Node: 'x'"]])
def test_without_a_traceback_there_is_none(lines: list[str]) -> None:
    assert last_exception(lines) is None


def test_a_long_line_is_read_at_once() -> None:
    lines = [f'  File "{"x" * 9000}', " " * 9000 + "x", "a." * 4500 + " ", f'  File "t.py", line 1{" in" * 3000}']
    assert last_exception([HEADER, *lines * 20]) is None
    assert len(str(last_exception(printed("raise ValueError('x' * 9000)")))) < 400
