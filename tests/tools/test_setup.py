"""The steps together: what is found is left alone, and what fails ends the set-up."""

import io
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tools.setup import (
    CHECKOUT,
    commands,
    docker,
    engine,
    image,
    programs,
    python,
)
from tools.setup import __main__ as setup
from tools.setup.programs import Output, SetupError

Program = Callable[[str | Path, str], Path]


class FakeStep:
    """A step that notes what it is asked to do."""

    def __init__(self, name: str, asked: list[str], found: bool = True, fails: bool = False) -> None:
        self.name, self.asked, self.found, self.fails = name, asked, found, fails

    def find(self) -> str | None:
        return f"{self.name}: found" if self.found else None

    def make(self, output: Output) -> str:
        self.asked.append(self.name)
        if self.fails:
            raise SetupError(f"{self.name}: cannot be made")
        return f"{self.name}: made"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[str]]:
    """Puts fake steps in place of all real ones; returns the list of those that were made."""

    def put(missing: tuple[str, ...] = (), failing: tuple[str, ...] = ()) -> list[str]:
        asked: list[str] = []
        for name in setup.STEPS:
            step = FakeStep(name, asked, found=name not in missing, fails=name in failing)
            monkeypatch.setitem(setup.STEPS, name, step)
        return asked

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return put


def test_every_step_says_one_line(steps: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    asked = steps(missing=("pulumi", "image"))
    assert setup.main([]) == 0
    assert {*asked} == {"pulumi", "image"}
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["python: found", "commands: found", "docker: found"]
    assert {*lines[3:]} == {"pulumi: made", "image: made"}


def test_a_failing_step_ends_its_lane(steps: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    asked = steps(missing=("commands", "pulumi"), failing=("commands",))
    assert setup.main([]) == 1
    assert asked == ["commands"]
    assert capsys.readouterr().err == "\ncommands: cannot be made\n"


def test_both_lanes_reasons_are_told(steps: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    both = threading.Barrier(2)
    steps(missing=("python", "docker"), failing=("python", "docker"))
    for name in ("python", "docker"):
        setup.STEPS[name].make = partial(fail_together, both, name)  # type: ignore[method-assign]
    assert setup.main([]) == 1
    assert capsys.readouterr().err == "\npython: cannot be made\ndocker: cannot be made\n"


def fail_together(both: threading.Barrier, name: str, output: Output) -> str:
    both.wait()
    raise SetupError(f"{name}: cannot be made")


def test_a_step_ends_the_program_of_the_other_lane(steps: Callable[..., list[str]], tmp_path: Path) -> None:
    """`sleep` begins, and only then the other lane fails: sooner than it would have ended by itself."""
    steps(missing=("python", "docker"))
    begun = tmp_path / "begun"

    def sleep(output: Output) -> str:
        return programs.run("sh", "-c", f"touch '{begun}'; exec sleep 600", limit=900)

    def fail(output: Output) -> str:
        deadline = time.monotonic() + 30
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        raise SetupError("python: cannot be made")

    setup.STEPS["docker"].make, setup.STEPS["python"].make = sleep, fail  # type: ignore[method-assign]
    started = time.monotonic()
    assert setup.main([]) == 1
    assert begun.exists() and time.monotonic() - started < 60


def test_a_step_is_looked_for_after_those_before_it(steps: Callable[..., list[str]]) -> None:
    """A new `.venv` is without the commands that the one before had."""
    asked = steps(missing=("python",))

    def make(output: Output) -> str:
        setup.STEPS["commands"].found = False  # type: ignore[attr-defined]
        return "python: made"

    setup.STEPS["python"].make = make  # type: ignore[method-assign]
    assert setup.main([]) == 0
    assert asked == ["commands"]


def test_one_step_can_be_asked_for_alone(steps: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    asked = steps(missing=("python", "pulumi", "docker"))
    assert setup.main(["python"]) == 0
    assert asked == ["python"]


def test_an_unknown_step_lists_the_known_ones(
    steps: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    steps()
    with pytest.raises(SystemExit) as exit_:
        setup.main(["dokcer"])
    assert exit_.value.code == 2
    assert "the steps are python, dev, commands, pulumi, docker, image, test" in capsys.readouterr().err


def test_what_a_step_can_prepare_runs_beside_those_before_it(
    steps: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = steps(missing=("python", "pulumi"))
    prepared = threading.Event()
    monkeypatch.setattr(setup.STEPS["pulumi"], "prepare", lambda output: prepared.set(), raising=False)
    monkeypatch.setattr(setup.STEPS["python"], "make", lambda output: f"prepared: {prepared.wait()}")
    stream = io.StringIO()
    setup.run_steps(["python", "pulumi"], Output(stream), report_found=True)
    assert "prepared: True" in stream.getvalue()
    assert asked == ["pulumi"]


def test_env_prints_only_shell_code_on_stdout(
    steps: Callable[..., list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup.exports, "render", lambda: "export A=b\n")
    asked = steps(missing=("pulumi", "docker", "image"))
    assert setup.main(["env"]) == 0
    assert asked == ["pulumi"]
    written = capsys.readouterr()
    assert (written.out, written.err) == ("export A=b\n", "pulumi: made\n")


def test_env_prints_no_exports_when_a_step_fails(
    steps: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    steps(missing=("python",), failing=("python",))
    assert setup.main(["env"]) == 1
    assert capsys.readouterr().out == ""


def test_a_concurrent_setup_s_work_is_reused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answers = iter([None, "python: found"])
    step = FakeStep("python", asked := [])
    monkeypatch.setattr(step, "find", lambda: next(answers))
    monkeypatch.setitem(setup.STEPS, "python", step)
    stream = io.StringIO()
    setup.run_steps(["python"], Output(stream), report_found=True)
    assert (asked, stream.getvalue()) == ([], "python: found\n")


def test_a_setup_that_waits_names_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(programs, "FIRST_PROGRESS_SECONDS", 0)
    written = io.StringIO()
    waits = threading.Event()

    with setup.lock(Output(io.StringIO())):
        monkeypatch.setattr(written, "flush", waits.set)
        waiting = threading.Thread(target=lambda: setup.lock(Output(written)).__enter__(), daemon=True)
        waiting.start()
        assert waits.wait()
    waiting.join(10)
    assert written.getvalue() == f"waiting for another set-up, of process {os.getpid()} in {CHECKOUT} ... 0 s\n"


def test_a_finished_setup_uses_only_local_programs(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No network, that is: no pip, no pull, no download; neither do the programs get a chance to."""
    note = f'echo "${{0##*/}} $1" >> "{tmp_path}/asked"'
    program("pulumi", f"{note}; echo v3.259.0")
    program("pulumi-language-python", note)
    program("docker", f'{note}; case "$1" in image) echo null;; *) echo 28.2.2;; esac')
    for name in ("pip", "go", "apt-get", "dockerd", "debootstrap", "curl"):
        program(name, note)
    for step in (
        engine,
        docker,
        image,
        python,
    ):
        monkeypatch.setattr(step, "make", lambda output: pytest.fail("made something"))
    monkeypatch.setattr(python, "find", lambda: "Python environment: found")
    monkeypatch.setattr(commands, "find", lambda: "Commands: found")
    assert setup.main([]) == 0
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["pulumi version", "docker version", "docker context", "docker image"]
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_an_unwritable_folder_is_named_without_traceback(
    steps: Callable[..., list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    steps(missing=("python",))
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert setup.main([]) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err
