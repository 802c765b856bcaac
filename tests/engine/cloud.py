"""A project of the target gcp without a cloud: a stand-in for the gcp provider, the emulator in place of Vertex AI."""

import json
from pathlib import Path
from typing import Any

import yaml
from vertex_training.review.granted import ENDPOINT_VARIABLE

from tests.engine.project import CHECKOUT, Project
from tests.standins import training
from tests.standins.gcp import server
from tests.vertex_emulator.running import IMAGE, RunningEmulator

STANDIN = CHECKOUT / "tests" / "standins" / "gcp"
GCP: dict[str, Any] = {
    "vertex-training:target": "gcp",
    "vertex-training:include": ["training/jobs.yaml"],
    "vertex-training:project": "acme-dev",
    "vertex-training:projectNumber": "123456789012",
    "vertex-training:region": "europe-west4",
}


class CloudProject(Project):
    """A project whose stack `dev` is for Google Cloud; `vertex` takes its jobs: the emulator, or a stand-in for it."""

    def __init__(self, folder: Path, vertex: RunningEmulator | training.Training, name: str = "dev") -> None:
        super().__init__(folder, name)
        self.vertex: Any = vertex
        self.record = folder / "record.jsonl"
        program = yaml.safe_load((self.root / "Pulumi.yaml").read_text())
        program["plugins"] = {"providers": [{"name": "gcp", "path": str(STANDIN)}]}
        (self.root / "Pulumi.yaml").write_text(yaml.safe_dump(program))
        self.environment |= {
            "GCP_STANDIN_RECORD": str(self.record),
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": f"{vertex.url}/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING": f"{vertex.url}/",
            ENDPOINT_VARIABLE: f"{vertex.url}/",
        }
        self._provider, port = server.start_server(self.environment)
        self.environment["PULUMI_DEBUG_PROVIDERS"] = f"gcp:{port}"
        self.stack = json.loads(json.dumps(GCP))
        self.declare()

    def read_provider_calls(self) -> list[dict[str, Any]]:
        """Return the recorded calls of the provider, in order: `operation`, `type`, `name`, `inputs`."""
        return [json.loads(line) for line in self.record.read_text().splitlines()]


def create_cloud_project(folder: Path, vertex: RunningEmulator, name: str = "dev") -> CloudProject:
    """Create a stack of the target gcp with one job, whose image was built elsewhere."""
    project = CloudProject(folder, vertex, name)
    project.declarations["images"] = {"trainer": {"uri": IMAGE}}
    project.container["command"] = ["true"]
    project.declare()
    return project
