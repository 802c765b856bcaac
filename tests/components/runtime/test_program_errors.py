"""Errors of a program: raised as they are, beside problems of declarations, and nothing needs what is missing.

`graph` asserts the latter for each registration, as the engine does only when it writes a state that it then refuses.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from vertex_training import Completion, CustomJob, PythonPackage, TrainingImage, packages
from vertex_training.errors import DeclarationErrors
from vertex_training.images.declaration import image_violations
from vertex_training.stack import Named

from tests.components.fakes import Ground
from tests.components.jobs.test_provider import ARGS
from tests.components.targets.gcp.graph import Graph, graph
from tests.vertex_api.jobs import custom_job, edited

# The threads of Pulumi's mocks leave an event loop each, and programs that end early coroutines.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning"),
    pytest.mark.usefixtures("sources"),
]
RUN = {"name": "projects/p/locations/r/customJobs/1", "state": "JOB_STATE_RUNNING", "page": "https://page"}


def interrupt_soon() -> None:
    """Do what Ctrl-C does: a program with an output that never comes waits without an end."""
    (main,) = (task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == "graph.<locals>.run")  # type: ignore[union-attr]
    asyncio.get_running_loop().call_later(0.1, main.cancel)


def never(_: Any) -> Any:
    interrupt_soon()
    return asyncio.get_running_loop().create_future()


def cancelled(_: Any) -> Any:
    interrupt_soon()  # Pulumi may not notice, and wait for what depends on the resource
    raise asyncio.CancelledError


def raising(error: BaseException) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise error

    return fail


ERRORS: dict[str, tuple[type[BaseException], Callable[[Any], Any]]] = {
    "KeyError": (KeyError, lambda run: run["nosuchkey"]),
    "TypeError": (TypeError, lambda run: run + 1),
    "AssertionError": (AssertionError, raising(AssertionError("of the program"))),
    "surrogates": (ValueError, lambda _: "caf\udce9"),
    "CancelledError": (asyncio.CancelledError, cancelled),
    "RunError": (pulumi.RunError, raising(pulumi.RunError("of the program"))),
    "never": (asyncio.CancelledError, never),
}


def job(name: str, ground: Ground, *args: Any, **given: Any) -> CustomJob:
    return CustomJob(name, edited(custom_job(), *ARGS, to=[*args]), foundation=ground, **given)  # type: ignore[arg-type]


def options(value: Any) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(depends_on=[value])


PLACES: dict[str, Callable[[Any, Ground], Any]] = {
    "args": lambda value, ground: job("b", ground, value),
    "secrets": lambda value, ground: job("b", ground, "${secrets.key}", secrets={"key": value}),
    "depends_on": lambda value, ground: job("b", ground, opts=options(value)),
    "image's secrets": lambda value, ground: TrainingImage(
        "b", {"context": "."}, foundation=ground, secrets={"key": value}
    ),
    "image's depends_on": lambda value, ground: TrainingImage("b", {"context": "."}, options(value), foundation=ground),
    "package's depends_on": lambda value, ground: PythonPackage(
        "b", {"script": "train.py"}, options(value), foundation=ground
    ),
    "deadlines": lambda value, ground: Completion(
        "b", {"c": job("c", ground)}, foundation=ground, deadlines={"c": value}
    ),
    "parent": lambda value, ground: job("b", ground, opts=pulumi.ResourceOptions(parent=Half(value))),
}


CASES = [(place, error) for place in PLACES for error in ERRORS]
for each in ("depends_on", "image's depends_on", "package's depends_on"):
    CASES.remove((each, "surrogates"))  # a text is no resource


class Half(pulumi.ComponentResource):
    """A component whose own registration fails."""

    def __init__(self, value: Any) -> None:
        super().__init__("team:index:Half", "half", {"value": value})


def program(place: str, fail: Callable[[Any], Any], make_ground: Callable[[], Any] = Ground) -> Callable[[], None]:
    """A program that fails at a place, with all that may stand behind it."""

    def make() -> None:
        ground = make_ground()
        first, refused = job("a", ground), job("refused", ground)
        broken = PLACES[place](first.run.apply(fail), ground)
        behind = pulumi.ResourceOptions(depends_on=[broken])
        job("behind", ground, opts=behind)
        TrainingImage("behind", {"context": "."}, behind, foundation=ground)
        PythonPackage("behind", {"script": "train.py"}, behind, foundation=ground)
        Completion("behind", {"refused": refused}, behind, foundation=ground)
        if isinstance(broken, CustomJob):
            waits = Completion("all", {"a": first, "b": broken}, foundation=ground, omit_failed=True)
            waits.results_so_far()
            broken.recovered("run")
            job("uses", ground, broken.result("name"))

    return make


@pytest.mark.parametrize("failing", [(), ("refused",)], ids=["", "continue-on-error"])
@pytest.mark.parametrize(("place", "error"), CASES)
def test_an_error_is_raised_and_nothing_dangles(place: str, error: str, failing: tuple[str, ...]) -> None:
    found, (kind, fail) = Graph(), ERRORS[error]
    with pytest.raises(kind):
        graph(program(place, fail), {"CustomJob": {"run": RUN}}, failing=failing, found=found)
    assert found.dangling == set()
    names = {name.partition("/")[2] for name in found.requests}
    assert "a" in names and names.isdisjoint({"b", "behind", "all", "uses"})


@pytest.mark.parametrize("kind", ["a", "b"])
def test_what_the_engine_fails_is_recovered(kind: str) -> None:
    def make() -> None:
        ground = Ground()
        first = job("a", ground)
        second = job("b", ground, first.run["name"])
        done = Completion("done", {"a": first, "b": second}, foundation=ground)
        pulumi.Output.all(second.recovered("run"), done.recovered("results")).apply(seen.append)
        job("behind", ground, second.run["name"], opts=pulumi.ResourceOptions(depends_on=[done]))

    seen: list[Any] = []
    found = graph(make, {"CustomJob": {"run": RUN}}, failing=[kind])
    assert seen == [[None, None]]
    assert found.requests.keys() - {"Stack/project-stack"} == {
        "CustomJob/a",
        "CustomJob/b",
        "CustomJob/behind",
        "Completion/done",
    }
    assert found.inputs.keys() == ({"CustomJob/a"} if kind == "b" else set())


@pytest.mark.parametrize("is_own", [True, False], ids=["statement", "apply"])
@pytest.mark.parametrize("preview", [True, False], ids=["preview", "up"])
def test_an_error_and_a_declaration_are_both_shown(
    preview: bool, is_own: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def make() -> None:
        ground = Ground()
        first = job("a", ground)
        CustomJob("typo", {"displayName": "typo"}, foundation=ground)  # type: ignore[typeddict-item]
        wrong: dict[str, Any] = {}
        job(
            "b", ground, wrong["nosuchkey"] if is_own else pulumi.Output.from_input(wrong).apply(lambda it: it["nokey"])
        )
        job("c", ground, opts=pulumi.ResourceOptions(depends_on=[first]))

    with pytest.raises(KeyError):
        graph(make, preview=preview)
    assert caplog.text.count('CustomJob "typo": jobSpec') == 1


def test_declarations_alone_are_raised_as_they_are() -> None:
    with pytest.raises(DeclarationErrors, match='CustomJob "typo": jobSpec'):
        graph(lambda: CustomJob("typo", {"displayName": "typo"}, foundation=Ground()) and None, preview=True)  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda at: Completion("x", ["m1"], foundation=at), r'Completion "x": jobs must be jobs by names of your own'),  # type: ignore[arg-type]
        (lambda at: Completion("x", {"m": "m1"}, foundation=at), r"Completion \"x\": jobs\.m must be a job"),  # type: ignore[dict-item]
        (lambda at: job("x", at, jobs=["m1"]), r'CustomJob "x": jobs must be jobs by names of your own'),
    ],
)
def test_a_slip_is_one_line(make: Callable[[Ground], Any], said: str) -> None:
    with pytest.raises(pulumi.RunError, match=said):
        graph(lambda: make(Ground()) and None)


def test_a_name_that_is_not_declared_is_one_line() -> None:
    uris = Named("images.uris", {"tiny": "gcr.io/tiny"})
    assert dict(uris) == {"tiny": "gcr.io/tiny"} and uris.get("tinny") is None
    with pytest.raises(pulumi.RunError, match=r'^images\.uris: "tinny" is not a name .*; did you mean tiny\?$'):
        uris["tinny"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda at: TrainingImage("x", {"context": "."}, foundation=at),
            r'TrainingImage "x": context: \./sub/caf\\xe9\.txt: its name is no UTF-8; rename the file, or exclude it',
        ),
        (
            lambda at: PythonPackage("x", {"path": "."}, foundation=at),
            r'PythonPackage "x": path: \./sub/caf\\xe9\.txt: its name is no UTF-8; rename the file$',
        ),
    ],
)
def test_a_file_name_that_is_no_text_is_one_line(make: Callable[[Ground], Any], said: str) -> None:
    Path("sub").mkdir()
    Path("pyproject.toml").touch()
    Path(os.fsdecode(b"sub/caf\xe9.txt")).touch()
    with pytest.raises(pulumi.RunError, match=said):
        graph(lambda: make(Ground()) and None)


def test_file_names_are_problems_of_declarations() -> None:
    Path("sub").mkdir()
    Path(os.fsdecode(b"sub/caf\xe9.txt")).touch()
    Path("pyproject.toml").touch()
    said = "./sub/caf\\xe9.txt: its name is no UTF-8; rename the file"
    ignoring = ", or exclude it in .dockerignore"
    assert [*image_violations(Path.cwd(), {"context": "."})] == [(("context",), said + ignoring)]
    packaged: Any = {"path": ".", "script": "train.py", "baseImage": "python"}
    assert [*image_violations(Path.cwd(), {"package": packaged})] == [(("package", "path"), said + ignoring)]
    assert [*packages.violations(Path.cwd(), {"path": "."})] == [(("path",), said)]


@pytest.mark.parametrize("script", ["pulumi-language-python-exec", "automation.py"])
def test_an_interrupted_program_shows_no_traceback(script: str, tmp_path: Path) -> None:
    lines = ["from vertex_training.runtime import sdk", "sdk.failures()", "raise {}", ""]
    (tmp_path / script).write_text("\n".join(lines).format("KeyboardInterrupt"))
    interrupted = run_script(tmp_path / script)
    assert interrupted.returncode == -signal.SIGINT
    assert ("Traceback" in interrupted.stderr) == (script == "automation.py")
    (tmp_path / script).write_text("\n".join(lines).format("KeyError"))
    assert "KeyError" in run_script(tmp_path / script).stderr


def run_script(file: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
