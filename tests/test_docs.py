"""Pages about the target gcp: what they state as fact is what the program does."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from vertex_training.schema import shapes

from tests.blocks import blocks, taken
from tests.components.targets.gcp.graph import forget_loops, graph
from tools.template import tracked_files
from vertex_api.names import CUSTOM_JOB
from vertex_api.validation.check import validate_job
from vertex_api.validation.shape import canonicalize
from vertex_emulator.faults import FAULT_FIELDS, FAULT_KINDS
from vertex_emulator.replicas.size import Host, warnings

DOCS = Path(__file__).parents[1] / "docs"
ROOT = DOCS.parent
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(p for f in ("docs", "examples", "template") for p in (ROOT / f).rglob("*.md"))]
)
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_the_program_for_adopting_runs() -> None:
    (program,) = taken("docs/adopting.md", "python")
    made = graph(lambda: exec(program, {}))
    forget_loops()
    assert len(made.of("Repository")) == 1 and len(made.of("RepositoryIamMember")) == 2


def test_the_page_on_promotion_shows_the_shipped_prod() -> None:
    shown = next(each.text for each in blocks("docs/ci.md") if each.text.startswith("vertex-training:include:"))
    shipped = yaml.safe_load((DOCS.parent / "stacks" / "Pulumi.prod.yaml").read_text())["config"]
    for key, value in yaml.safe_load(shown).items():
        assert shipped[key] == value or "DEV_PROJECT" in str(shipped[key]), key


def test_pages_agree_on_the_apis_of_impersonation() -> None:
    commands = [
        re.findall(r"gcloud services enable (.*iamcredentials.*)", (DOCS / f"{page}.md").read_text())
        for page in ("first-run", "ci")
    ]
    assert commands[0] == commands[1] == ["iamcredentials.googleapis.com sts.googleapis.com --project PROJECT"]


def test_the_template_offers_the_documented_quota_project() -> None:
    keys = ('gcp:userProjectOverride: "true"\n', "gcp:billingProject: PROJECT\n")
    stack = (DOCS.parent / "template" / "stacks" / "Pulumi.dev.yaml").read_text()
    for key in keys:
        assert f"   {key}" in (DOCS / "first-run.md").read_text()
        assert f"  # {key}" in stack
    assert "gcp:userProjectOverride" in yaml.safe_load(stack.replace("# gcp:", "gcp:"))["config"]


def test_what_the_template_offers_in_comments_is_valid() -> None:
    stack = (ROOT / "template" / "stacks" / "Pulumi.dev.yaml").read_text()
    config = yaml.safe_load(stack.replace("# vertex-training:", "vertex-training:"))["config"]
    assert {"vertex-training:identity", "vertex-training:guardrails"} <= config.keys() - yaml.safe_load(stack)["config"]
    keys = {key.removeprefix("vertex-training:"): value for key, value in config.items() if not key.startswith("gcp:")}
    _, problems = canonicalize(shapes.Stack, keys)
    assert problems == []


def test_files_of_the_template_name_their_schemas() -> None:
    files = [file for file in tracked_files() if file.startswith("template/") and file.count("/") == 2]
    for file in (file for file in files if re.search(r"/(stacks|training)/", file)):
        kind = "stack" if "/stacks/" in file else "declarations"
        first, _, _ = (ROOT / file).read_text().partition("\n")
        assert first == f"# yaml-language-server: $schema=../schemas/{kind}.schema.json"
        assert (ROOT / "components" / "schema" / f"{kind}.schema.json").is_file()
    assert "schema --write schemas" in (ROOT / "template" / "README.md").read_text()


def test_the_address_of_the_repository_stands_in_one_place() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    address = urls["Homepage"].removeprefix("https://github.com/")
    assert all(address in url for url in urls.values())
    texts = {file: (ROOT / file).read_bytes().decode(errors="replace") for file in tracked_files()}
    assert [file for file, text in texts.items() if address in text] == ["pyproject.toml"]
    assert texts["pyproject.toml"].count(address) == len(urls)
    for page in ("install", "releasing"):
        assert "`project.urls`" in texts[f"docs/{page}.md"]


def test_pages_agree_on_the_roles_of_previews() -> None:
    access, ci = ((DOCS / f"{page}.md").read_text() for page in ("access", "ci"))
    needed = access[access.index("A preview reads the state backend") :]
    granted = ci[ci.index("- `PREVIEWER` only reads") : ci.index("Set the variables")]
    roles = {"roles/cloudquotas.viewer", "roles/cloudkms.cryptoKeyDecrypter", "roles/browser"}
    assert set(re.findall(r"`(roles/\S+)`", needed)) == roles
    # The state is in a bucket there.
    assert set(re.findall(r"`(roles/\S+)`", granted)) == {*roles, "roles/storage.objectViewer"}


def slugs(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_messages_name_sections_that_are_there() -> None:
    texts = " ".join(messages())
    assert re.findall(r"(?<!vertex-ai/)\bdocs/[\w-]+\.md", texts) == [], "a user's project has no such file"
    named = set(re.findall(r"vertex-training docs ([\w-]+)(?:#([\w-]+))?", texts))
    assert {("ci", "without-pulumis-plugin"), ("google", "")} <= named
    assert [page for page, _ in named if not (DOCS / f"{page}.md").exists()] == []
    lost = [each for each in named if each[1] and each[1] not in slugs(DOCS / f"{each[0]}.md")]
    assert lost == []


def messages() -> Iterator[str]:
    """Yield the texts of the code that are no docstrings."""
    rooms = (ROOT / room for room in ("components", "vertex_api", "vertex_emulator"))
    for file in (file for room in rooms for file in room.rglob("*.py")):
        if "docs" not in (text := file.read_text()):
            continue
        nodes = [*ast.walk(ast.parse(text))]
        alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                yield node.value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    lost = []
    for path, anchor in re.findall(r"\]\((?!\w+:)([^)#]*)#?([^)]*)\)", text):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in slugs(target)):
            lost.append(f"{path}#{anchor}")
    assert lost == []


def test_the_index_has_every_page() -> None:
    listed = re.findall(r"^\| \[[^]]+\]\(([^)/]+)\)", (DOCS / "README.md").read_text(), re.MULTILINE)
    assert {*listed} == {page.name for page in DOCS.glob("*.md")} - {
        "README.md",
        "contributing.md",
        "gotchas.md",
        "releasing.md",
    }


def test_each_page_begins_with_what_it_is_good_for() -> None:
    """As the index says of them."""
    assert "Each page begins with what you can do after reading it." in (DOCS / "README.md").read_text()
    texts = {page.name: page.read_text().split("\n\n", 2)[1] for page in DOCS.glob("*.md")}
    others = {
        name for name, text in texts.items() if not text.startswith(("After reading this page ", "Look up here "))
    }
    assert others == {"README.md", "gotchas.md"}


def test_tests_that_pages_name_exist() -> None:
    compared = re.findall(r"\(`([\w/]+\.py)`\)", (DOCS / "testing.md").read_text())
    assert len(compared) >= 6 and all((ROOT / "tests" / path).is_file() for path in compared)
    tested = re.findall(r"`(tests/[\w/.]+)`", (DOCS / "tested.md").read_text())
    assert len(tested) > 15 and [path for path in tested if not (ROOT / path).exists()] == []
    shown = re.findall(r"`([\w/]+\.py)::(\w+)`", (DOCS / "security.md").read_text())
    assert len(shown) > 80
    assert [name for path, name in shown if f"def {name}(" not in (ROOT / "tests" / path).read_text()] == []


def test_the_page_on_gpus_shows_what_is_said() -> None:
    (declared,) = (yaml.safe_load(each) for each in taken("docs/machines.md", "yaml"))
    body = declared["customJobs"]["vision"]
    del body["lifecycle"]
    (pool,) = body["jobSpec"]["workerPoolSpecs"]
    pool["containerSpec"]["imageUri"] = "acme/vision:1"
    assert validate_job(CUSTOM_JOB, {"displayName": "vision", **body})[1] == []
    (shown,) = taken("docs/machines.md", "output", "NVIDIA_L4: ")
    assert warnings([pool], Host(cpus=96, memory=1 << 40)) == shown.splitlines()
    pool["machineSpec"]["acceleratorCount"] = 1
    (refused,) = taken("docs/machines.md", "output", "The accelerator count")
    problems = validate_job(CUSTOM_JOB, {"displayName": "vision", **body})[1]
    assert [each.message for each in problems] == refused.splitlines()


def test_the_testing_page_has_each_fault_with_its_fields() -> None:
    section = (DOCS / "testing.md").read_text().partition("## Make jobs and requests fail")[2]
    section = section.partition("\n### ")[0]
    assert {*re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)} == FAULT_KINDS.keys()
    assert {*FAULT_FIELDS} - {"kind"} <= {*re.findall(r"`(\w+)`", section)}
