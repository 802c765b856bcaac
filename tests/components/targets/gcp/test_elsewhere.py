"""The stacks of docs/capabilities.md: who may pull images of another project, and what is around jobs."""

import json
from pathlib import Path

import pytest
import yaml
from vertex_training.program import create_foundation
from vertex_training.settings.settings import Settings
from vertex_training.targets.gcp import GcpFoundation

from tests.components.targets.gcp.graph import forget_loops, graph

STACKS = Path(__file__).parents[3] / "corpus" / "capabilities" / "stacks"
NUMBER = "123456789012"
AGENTS = {
    f"serviceAccount:service-{NUMBER}@{name}.iam.gserviceaccount.com"
    for name in ("gcp-sa-aiplatform", "gcp-sa-aiplatform-cc")
}
# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def load_stack(folder: Path, name: str) -> Settings:
    given = yaml.safe_load((STACKS / f"Pulumi.{name}.yaml").read_text())["config"]
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    return Settings.load_from_config("team", name, folder, config)


def test_agents_can_pull_from_another_project(tmp_path: Path) -> None:
    settings = load_stack(tmp_path, "elsewhere")
    made = graph(lambda: create_foundation(settings))
    forget_loops()

    readers = made.of("RepositoryIamMember").values()
    assert {inputs["member"] for inputs in readers} == AGENTS
    assert {(inputs["project"], inputs["location"], inputs["repository"]) for inputs in readers} == {
        ("acme-images", "us", "training")
    }
    of_bucket = made.of("BucketIAMMember").values()
    assert {each["member"] for each in of_bucket if "artifacts" in each["bucket"]} == AGENTS
    assert made.of("Repository") == {}


def test_a_stack_has_what_is_around_its_jobs(tmp_path: Path) -> None:
    settings = load_stack(tmp_path, "around")
    foundations = []
    made = graph(lambda: foundations.append(GcpFoundation("gcp", settings)))
    forget_loops()

    board = "projects/acme-dev/locations/us-central1/tensorboards/4242424242"
    assert (foundations[0].defaults.job_spec["tensorboard"], foundations[0].tensorboard_name) == (board, None)
    assert made.of("AiTensorboard") == {}
    assert len(made.of("AlertPolicy")) == len(made.of("NotificationChannel")) == len(made.of("SecretIamMember")) == 1
    assert foundations[0].image_builder_config["cloudBuild"] == {
        "project": "acme-dev",
        "region": "us-central1",
        "serviceAccount": "team-around-build@acme-dev.iam.gserviceaccount.com",
        "sourceFolder": "gs://acme-dev-team-around/team/around/build-sources",
        "machineType": "E2_HIGHCPU_8",
        "timeout": "1800s",
    }
