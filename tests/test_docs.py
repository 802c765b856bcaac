"""Pages about the target gcp: what they state as fact is what the program does."""

import importlib
import re
from pathlib import Path

import pytest
import yaml

from tests.components.gcp.graph import forget_loops, graph

DOCS = Path(__file__).parents[1] / "docs"
ROLES = {
    value
    for module in ("access", "bucket", "encryption", "identity")
    for value in vars(importlib.import_module(f"components.gcp.{module}")).values()
    if isinstance(value, str) and value.startswith("roles/")
} | set(importlib.import_module("components.gcp.identity").ROLES.values())
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_the_page_on_access_lists_every_role_that_is_granted_and_no_other() -> None:
    page = (DOCS / "access.md").read_text()
    table = page[page.index("## What the stack grants") : page.index("## What the deployer needs")]
    assert set(re.findall(r"roles/[A-Za-z.]+", table)) == ROLES


def test_the_pipelines_are_yaml_and_use_options_of_pulumi_that_gate() -> None:
    github, gitlab = (
        yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)\n```\n", (DOCS / "ci.md").read_text(), re.DOTALL)
    )
    assert github["jobs"].keys() == {"preview", "up", "drift"}
    assert {"preview", "up", "drift"} <= gitlab.keys()
    assert github["permissions"]["id-token"] == "write"
    gate = "pulumi refresh --stack prod --preview-only --expect-no-changes --non-interactive"
    assert gate in github["jobs"]["drift"]["steps"][-1]["run"] and gate in gitlab["drift"]["script"]


def test_the_program_on_the_page_on_adopting_is_one() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (DOCS / "adopting.md").read_text(), re.DOTALL)
    made = graph(lambda: exec(program, {}))
    forget_loops()
    assert len(made.of("Repository")) == 1 and len(made.of("RepositoryIamMember")) == 2


@pytest.mark.parametrize(
    "page", ["access", "adopting", "ci", "configuration", "editors", "environments", "interrupted", "python"]
)
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (DOCS / f"{page}.md").read_text())
    assert [link for link in links if not (DOCS / link).exists()] == []
