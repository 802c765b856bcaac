"""Pages about the target gcp: what they state as fact is what the program does."""

import re
from pathlib import Path

import pytest

from tests.components.gcp.graph import forget_loops, graph

DOCS = Path(__file__).parents[1] / "docs"
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_the_program_on_the_page_on_adopting_is_one() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (DOCS / "adopting.md").read_text(), re.DOTALL)
    made = graph(lambda: exec(program, {}))
    forget_loops()
    assert len(made.of("Repository")) == 1 and len(made.of("RepositoryIamMember")) == 2


@pytest.mark.parametrize("page", ["access", "adopting", "ci", "environments"])
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (DOCS / f"{page}.md").read_text())
    assert [link for link in links if not (DOCS / link).exists()] == []
