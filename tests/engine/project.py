"""The project that engine tests drive, and what they read of it."""

import atexit
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import docker
import yaml
from vertex_training.review.granted import ENDPOINT_VARIABLE

from tests.engine import preloaded_python
from tests.engine.preview import Preview, preview_stack, update_stack
from tests.standins import transit
from tests.vertex_emulator.running import PATIENCE_SECONDS
from vertex_emulator.cli import emulator
from vertex_emulator.pruning import clear

CHECKOUT = Path(__file__).parents[2]
TRAINER = Path(__file__).parent / "trainer"
STARTUP = Path(__file__).parent / "startup"
PARENT = "projects/local/locations/us-central1"
DECLARATIONS: dict[str, Any] = {
    "vars": {"epochs": 1},
    "images": {"trainer": {"context": "trainer"}},
    "customJobs": {
        "train": {
            "jobSpec": {
                "workerPoolSpecs": [
                    {
                        "machineSpec": {"machineType": "n1-standard-4"},
                        "containerSpec": {"imageUri": "${images.trainer}", "args": ["--epochs=${vars.epochs}"]},
                    }
                ]
            },
            "lifecycle": {"wait": True},
        }
    },
}
SEARCH: dict[str, Any] = {
    "studySpec": {
        "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
        "parameters": [{"parameterId": "lr", "doubleValueSpec": {"minValue": 0.0, "maxValue": 1.0}}],
    },
    "maxTrialCount": 4,
    "parallelTrialCount": 2,
    "trialJobSpec": {
        "workerPoolSpecs": [
            {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "${images.trainer}"}}
        ]
    },
    "lifecycle": {"wait": True},
}
SLEEP = ["sh", "-c", 'trap "exit 143" TERM; sleep "$0" & wait']
"""A command that sleeps as long as its argument says. As a container's first process, `sleep` alone ignores SIGTERM."""
_INITIAL_STACK: dict[str, tuple[str, dict[str, str]]] = {}
"""By path the state of an empty stack, with what its stack file says of its key; `NAME` stands for its name."""


class Project:
    """The program with a trainer and declarations of its own, below `folder`; `name` is its stack's."""

    def __init__(self, folder: Path, name: str = "local") -> None:
        self.name = name
        self.root = folder / "project"
        self.root.mkdir()
        for file in ("Pulumi.yaml", "__main__.py"):
            shutil.copy(CHECKOUT / file, self.root)
        (self.root / ".venv").symlink_to(CHECKOUT / ".venv")
        shutil.copytree(TRAINER, self.root / "trainer")
        (self.root / "stacks").mkdir()
        (self.root / "training").mkdir()
        self.declarations: dict[str, Any] = json.loads(json.dumps(DECLARATIONS))
        self.stack: dict[str, Any] = {
            "vertex-training:target": "local",
            "vertex-training:include": ["training/jobs.yaml"],
        }
        self.environment = engine_environment(folder)
        (folder / "state").mkdir()
        self.declare()
        self.create_stack(name)

    @property
    def job(self) -> dict[str, Any]:
        """The declaration of the job `train`, to be edited."""
        job: dict[str, Any] = self.declarations["customJobs"]["train"]
        return job

    @property
    def container(self) -> dict[str, Any]:
        """The container of the job `train`, to be edited."""
        container: dict[str, Any] = self.job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
        return container

    def declare(self) -> None:
        """Write the declarations and the stack file."""
        (self.root / "training" / "jobs.yaml").write_text(yaml.safe_dump(self.declarations, sort_keys=False))
        stack_file = self.root / "stacks" / f"Pulumi.{self.name}.yaml"
        known = yaml.safe_load(stack_file.read_text()) if stack_file.exists() else {}
        stack_file.write_text(yaml.safe_dump({**known, "config": self.stack}))

    def create_stack(self, name: str) -> None:
        """Create a stack, by copying what the first `pulumi stack init` of the process has written."""
        stack_file, state = self.root / "stacks" / f"Pulumi.{name}.yaml", self.root.parent / "state"
        if not _INITIAL_STACK:
            self.pulumi("stack", "init", "--secrets-provider", transit.PROVIDER, name)
            key = yaml.safe_load(stack_file.read_text())
            key.pop("config", None)
            for file in state.rglob("*"):
                if file.name in ("meta.yaml", f"{name}.json"):
                    path = str(file.relative_to(state).with_stem(file.stem.replace(name, "NAME")))
                    _INITIAL_STACK[path] = file.read_text().replace(f'/{name}"', '/NAME"'), key
        else:
            program = yaml.safe_load((self.root / "Pulumi.yaml").read_text())["name"]
            for path, (content, key) in _INITIAL_STACK.items():
                file = state / path.replace("vertex-training", program).replace("NAME", name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content.replace("vertex-training/NAME", f"{program}/{name}"))
                known = yaml.safe_load(stack_file.read_text()) if stack_file.exists() else {}
                stack_file.write_text(yaml.safe_dump({**known, **key}))

    def edit_code(self) -> None:
        """Add a comment to the trainer's file."""
        file = self.root / "trainer" / "train.py"
        file.write_text(file.read_text() + "\n# edited\n")

    def use_own_image(self, whose: str) -> None:
        """Give the trainer's image a content that no other test builds or removes meanwhile."""
        file = self.root / "trainer" / "train.py"
        file.write_text(f"{file.read_text()}\n# {whose}\n")

    def start_pulumi(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start `pulumi` in the background. Its processes are not forked, as tests interrupt and kill them."""
        return self._start_pulumi(arguments, preloaded_python.remove_variables(self.environment))

    def pulumi(self, *arguments: str, fails: bool = False) -> str:
        """Run `pulumi` and return its output; `fails` is whether it must fail."""
        process = self._start_pulumi(arguments, self.environment)
        output, _ = process.communicate(timeout=240)
        assert (process.returncode != 0) == fails, output
        assert "Traceback" not in output, output
        return output

    def _start_pulumi(self, arguments: Sequence[str], environment: dict[str, str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def up(self, *options: str, fails: bool = False) -> str:
        """Run `pulumi up` without a prompt and return its output."""
        return self.pulumi("up", "--yes", "--skip-preview", "--stack", self.name, *options, fails=fails)

    def refresh(self, *options: str) -> str:
        """Run `pulumi refresh` without a preview and a prompt, and return its output."""
        return self.pulumi("refresh", "--yes", "--skip-preview", "--stack", self.name, *options)

    def destroy(self) -> str:
        """Run `pulumi destroy` without a preview and a prompt, and return its output."""
        return self.pulumi("destroy", "--yes", "--skip-preview", "--stack", self.name)

    def preview_and_up(self, *options: str) -> tuple[str, str]:
        """Run `pulumi up` with its preview, and return what each of the two has printed."""
        shown, begins, printed = self.pulumi("up", "--yes", "--stack", self.name, *options).partition("\nUpdating (")
        assert begins, shown
        return shown, printed

    def preview(self, stack: str | None = None) -> Preview:
        """Run `pulumi preview --diff`."""
        return preview_stack(self.root, self.environment, stack or self.name)

    def update(self, *options: str) -> Preview:
        """Run `pulumi up --diff`, and return what it printed and changed."""
        return update_stack(self.root, self.environment, self.name, *options)

    def steps(self) -> list[dict[str, Any]]:
        """Return the changes that a preview shows."""
        return self.preview().steps

    def assert_no_changes(self, *options: str) -> None:
        """Assert that a preview shows no changes; with `--refresh`, that nothing has drifted either."""
        self.pulumi("preview", "--stack", self.name, "--expect-no-changes", *options)

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs."""
        return dict(self.resources()[f"vertex-training-{self.name}"].get("outputs", {}))

    def read_state(self, stack: str | None = None) -> str:
        """Return the stack's file in the backend; of another stack by its name."""
        return self._state_file(stack).read_text()

    def edit_state(self, edit: Callable[[dict[str, Any]], object]) -> None:
        """Edit the `deployment` of `pulumi stack export`, as an import of it does: `pulumi` takes a second for both."""
        state = json.loads(self.read_state())
        edit(state["checkpoint"]["latest"])
        self._state_file().write_text(json.dumps(state))

    def export(self) -> Path:
        """Return a file with what `pulumi stack export` prints."""
        file = self.root.parent / "exported.json"
        file.write_text(json.dumps({"version": 3, "deployment": json.loads(self.read_state())["checkpoint"]["latest"]}))
        return file

    def _state_file(self, stack: str | None = None) -> Path:
        (file,) = self.root.parent.glob(f"state/.pulumi/stacks/*/{stack or self.name}.json")
        return file

    def resources(self, stack: str | None = None) -> dict[str, dict[str, Any]]:
        """Return the recorded resources by name, from the backend's file: `pulumi` takes half a second to show it."""
        latest = json.loads(self.read_state(stack))["checkpoint"].get("latest") or {}
        return {item["urn"].rpartition("::")[2]: item for item in latest.get("resources", [])}

    def run_emulator(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of the emulator."""
        command = [sys.executable, "-m", "vertex_emulator", *arguments, f"--data={self.data}"]
        return subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )

    def start_emulator(self) -> dict[str, Any]:
        """Start the emulator as the provider does, and return its endpoint."""
        command = [
            sys.executable,
            "-c",
            "from vertex_training.runtime.emulator import start; start()",
        ]
        subprocess.run(command, cwd=self.root, env=self.environment, check=True, timeout=PATIENCE_SECONDS)
        return self.endpoint()

    @property
    def data(self) -> Path:
        """The emulator's folder."""
        return self.root / ".emulator"

    @property
    def emulator_id(self) -> str:
        """What the emulator's containers are labelled with."""
        return str(self.query_database("SELECT value FROM settings WHERE key = 'emulator'"))

    def query_database(self, query: str) -> Any:
        """Return the first value of a query's result from the emulator's database."""
        with closing(sqlite3.connect(self.data / "emulator.db")) as store:
            return store.execute(query).fetchone()[0]

    def containers(self) -> list[str]:
        """The names of the containers that the emulator has left on the machine."""
        with closing(docker.from_env()) as client:
            filters = {"label": f"vertex-training.emulator={self.emulator_id}"}
            return [container.name for container in client.containers.list(all=True, filters=filters)]

    def endpoint(self) -> dict[str, Any]:
        """Where the running emulator is."""
        return dict(json.loads((self.data / "endpoint.json").read_text()))

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call the emulator's API below `/v1`, or at an absolute path, and return the answer."""
        request = urllib.request.Request(
            self.endpoint()["url"] + (path if path.startswith("/") else f"/v1/{path}"),
            method=method,
            data=json.dumps(body).encode() if body else None,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as reply:
            return dict(json.load(reply))

    def list_jobs(self, collection: str = "customJobs") -> list[dict[str, Any]]:
        """Return the emulator's jobs."""
        return list(self.request("GET", f"{PARENT}/{collection}").get(collection, []))


@contextmanager
def create_project(folder: Path) -> Iterator[Project]:
    """Create a project below a folder, and end its emulator and containers afterwards."""
    project = Project(folder)
    try:
        yield project
    finally:
        if project.data.exists():
            emulator.stop(project.data)
            clear(project.data)


def engine_environment(folder: Path) -> dict[str, str]:
    """As `plain_environment`, for projects of this checkout: their processes are forked, and `pip list` is known."""
    return {
        **plain_environment(folder),
        "PYTHONPATH": str(STARTUP),
        **preloaded_python.get_variables(),
        "PACKAGE_LIST": str(package_list()),
    }


def plain_environment(folder: Path) -> dict[str, str]:
    """Variables with which `pulumi` keeps its state and its home below `folder`, and fetches nothing."""
    variables = {
        **os.environ,
        "PULUMI_BACKEND_URL": f"file://{folder}/state?metadata=skip",
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        **transit.get_variables(),
        # No server is there: without an emulator in place of Google Cloud, nothing is looked up.
        ENDPOINT_VARIABLE: "http://127.0.0.1:9/",
        # The heap of an engine with a small stack is not worth collecting.
        "GOGC": "off",
    }
    for name in ("VERTEX_EMULATOR_DATA", "PYTHONDONTWRITEBYTECODE"):
        variables.pop(name, None)
    return variables


@cache
def package_list() -> Path:
    """Return a file with what `pip list` prints, for tests/engine/startup/pip."""
    file = Path(tempfile.mkdtemp(prefix="vertex-training-packages-")) / "list.json"
    atexit.register(shutil.rmtree, file.parent)
    command = [CHECKOUT / ".venv" / "bin" / "python", "-m", "pip", "list", "-v", "--format", "json"]
    file.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    return file


def is_running(pid: int) -> bool:
    """Return whether a process runs and is not a zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False
