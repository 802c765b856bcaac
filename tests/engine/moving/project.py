"""The project of the jobs that move, and what tests do with it."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.engine.cloud import CloudProject
from tests.engine.project import CHECKOUT, Project
from tests.standins import training

KINDS = ("custom", "tuning", "pipeline")


class Moving:
    """A project of jobs that run nowhere; `server` stands in for the emulator, or for Vertex AI."""

    def __init__(self, project: Project, server: training.Training) -> None:
        self.project, self.server = project, server
        shutil.copy(CHECKOUT / "tests" / "engine" / "moving" / "__main__.py", self.project.root)
        self.project.declarations = {}
        del self.project.stack["vertex-training:include"]
        self.project.declare()
        self.layout: dict[str, Any] = {"jobs": []}

    @property
    def is_cloud(self) -> bool:
        """Whether the target is gcp."""
        return isinstance(self.project, CloudProject)

    def lay(self, *rows: dict[str, Any], **layout: Any) -> None:
        """Write what the program creates."""
        self.layout = {"jobs": rows, **layout}
        (self.project.root / "layout.json").write_text(json.dumps(self.layout))

    def changes(self) -> list[tuple[str, str]]:
        """Return what was submitted, cancelled and deleted since the last look; a schedule is put where it is."""
        calls = [call for call in self.server.calls if call[0] != "PUT"]
        self.server.calls.clear()
        return calls

    def ids(self) -> dict[str, str]:
        """Return the resource names of the jobs that the state has, by name."""
        resources = self.project.resources().items()
        return {name: each["id"] for name, each in resources if "run" in each.get("outputs", {})}

    def urn(self, name: str) -> str:
        """Return the URN of a recorded resource."""
        return str(self.project.resources()[name]["urn"])

    def holders(self, name: str) -> list[str]:
        """Return the URNs of the recorded resources of a name."""
        resources = json.loads(self.project.read_state())["checkpoint"]["latest"]["resources"]
        return [str(each["urn"]) for each in resources if each["urn"].endswith(f"::{name}")]

    def rename_urns(self, old: str, new: str) -> None:
        """Replace a text in all URNs of the state, as `pulumi state rename` does in one."""
        self.project.edit_state(lambda state: state.update(json.loads(json.dumps(state).replace(old, new))))


def job(name: str, kind: str = "custom", state: str = "running", **more: Any) -> dict[str, Any]:
    """Return a job of the program's layout, that stays in a state."""
    return {"name": name, "shown": f"{name}-{state}", "argument": "a", "kind": kind, **more}


@contextmanager
def serve(folder: Path, target: str = "local") -> Iterator[Moving]:
    """Yield a project of a target below a folder, whose jobs run nowhere."""
    with ExitStack() as stack:
        if target == "local":
            project = Project(folder)
            server = stack.enter_context(training.serve(project.data))
        else:
            server = stack.enter_context(training.serve(folder / "vertex"))
            project = CloudProject(folder, server)
        yield Moving(project, server)
