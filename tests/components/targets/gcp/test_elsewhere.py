"""The stack of docs/capabilities.md whose images are in another project: who may pull them there."""

import json
from pathlib import Path

import pytest
import yaml

from components import create_foundation
from components.settings.settings import Settings
from tests.components.targets.gcp.graph import forget_loops, graph

STACK = Path(__file__).parents[3] / "corpus" / "capabilities" / "stacks" / "Pulumi.elsewhere.yaml"
NUMBER = "123456789012"
AGENTS = {
    f"serviceAccount:service-{NUMBER}@{name}.iam.gserviceaccount.com"
    for name in ("gcp-sa-aiplatform", "gcp-sa-aiplatform-cc")
}
# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_agents_can_pull_from_another_project(tmp_path: Path) -> None:
    given = yaml.safe_load(STACK.read_text())["config"]
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    settings = Settings.load_from_config("team", "elsewhere", tmp_path, config)
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
