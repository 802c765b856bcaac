"""What declarations of a stranger, as of a fork's pull request, reach beside its checkout: nothing."""

from pathlib import Path

import pytest
from vertex_training.errors import ContextUnusable
from vertex_training.images.resource import build_context
from vertex_training.packages import SourceDistribution

from tests.components.projects import INCLUDING, LOCAL, load, problems

CANARY = "canary-0f3b7c"
OUTSIDE = ": files outside of a project's git checkout are not read"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in a folder with files of somebody's home, whose lines hold the canary, and a link to that."""
    home = tmp_path / "home"
    (home / ".config").mkdir(parents=True)
    for name in ("Dockerfile", "pyproject.toml", "train.py", ".config/credentials.yaml", ".netrc"):
        (home / name).write_text(f"FROM {CANARY}\nmachine [{CANARY}\n")
    checkout = home / "team"
    (checkout / ".git").mkdir(parents=True)
    (checkout / "home").symlink_to("..")
    return checkout


DECLARED = {
    "a context above": "images: {digits: {context: ..}}",
    "a context by a link": "images: {digits: {context: home/.config}}",
    "a context that is a link": "images: {digits: {context: home}}",
    "a context at an absolute path": "images: {digits: {context: '{home}'}}",
    "a package above": "images: {digits: {package: {path: .., script: train.py, baseImage: b:1}}}",
    "a package by a link": "images: {digits: {package: {path: home, script: train.py, baseImage: b:1}}}",
    "a Python package above": "packages: {digits: {path: ../}}",
    "a Python package by a link": "packages: {digits: {path: home}}",
    "a script above": "packages: {digits: {script: ../train.py}}",
    "a script by a link": "packages: {digits: {script: home/train.py}}",
    "a Dockerfile by a linked folder": "images: {digits: {context: trainer, dockerfile: link/Dockerfile}}",
    "a Dockerfile that is a link": "images: {digits: {context: trainer, dockerfile: Dockerfile.link}}",
    "a spec above": "customJobs: {train: {spec: {file: ../.config/credentials.yaml}}}",
    "a spec by a link": "customJobs: {train: {spec: {file: home/.config/credentials.yaml}}}",
    "a secret that names a file": "images: {digits: {context: trainer, secrets: {'a,src=/x': '${secrets.a}'}}}",
    "a path that is too long": f"images: {{digits: {{context: {'x' * 5000}}}}}",
    "a path with NUL": 'images: {digits: {context: "a\\0b"}}',
    "a link to itself": "packages: {digits: {path: loop}}",
}


@pytest.mark.parametrize("declared", DECLARED.values(), ids=list(DECLARED))
def test_declarations_lead_nowhere_else(checkout: Path, declared: str) -> None:
    trainer = checkout / "trainer"
    trainer.mkdir()
    (trainer / "Dockerfile").write_text("FROM scratch\n")
    (trainer / "link").symlink_to("../..")
    (trainer / "Dockerfile.link").symlink_to("../../Dockerfile")
    (checkout / "loop").symlink_to("loop")
    jobs = declared.replace("{home}", str(checkout.parent))
    (problem,) = problems(checkout, INCLUDING + "  vertex-training:secrets: {a: hidden}\n", jobs=jobs)
    assert problem.startswith("jobs.yaml:1: ") and CANARY not in problem and str(checkout.parent) not in problem[:40]


@pytest.mark.parametrize(
    "pattern",
    [
        "../.config/credentials.yaml",
        "../.config",
        "../**/*.yaml",
        "home/.config/*.yaml",
        "home/.config/credentials.yaml",
        "training/../../.config/*.yaml",
        "/etc",
        "/proc/self/environ",
        "*/../../.config/*.yaml",
    ],
)
def test_include_leads_nowhere_else(checkout: Path, pattern: str) -> None:
    (problem,) = problems(checkout, f'{LOCAL}  vertex-training:include: ["{pattern}"]\n')
    assert problem.startswith('stacks/Pulumi.dev.yaml:3: vertex-training:include[0]: "')
    assert CANARY not in problem


def test_a_wildcard_follows_no_link_outwards(checkout: Path) -> None:
    (checkout / "jobs.yaml").symlink_to("../.config/credentials.yaml")
    (problem,) = problems(checkout, f'{LOCAL}  vertex-training:include: ["*.yaml"]\n')
    assert problem.startswith('jobs.yaml: "jobs.yaml" leads out of team/; ') and problem.endswith(OUTSIDE[1:])


def test_a_project_in_a_folder_of_a_checkout_reaches_all_of_it(checkout: Path) -> None:
    (checkout / "trainer").mkdir()
    (checkout / "trainer" / "Dockerfile").write_text("FROM scratch\n")
    settings = load(checkout / "infrastructure", INCLUDING, jobs="images: {digits: {context: ../trainer}}")
    assert settings.images["digits"]["context"] == "../trainer"


def test_an_ignore_file_by_a_link_is_not_read(checkout: Path) -> None:
    (checkout / "Dockerfile").write_text("FROM scratch\n")
    (checkout / ".dockerignore").symlink_to("../.netrc")
    with pytest.raises(ContextUnusable, match="is a link that leads out of the folder") as failure:
        build_context(checkout, {"context": "."}).digest  # noqa: B018
    assert CANARY not in str(failure.value)


def test_links_are_sent_as_links(checkout: Path) -> None:
    """Neither a digest nor an archive depends on what a link leads to."""
    (checkout / "Dockerfile").write_text("FROM scratch\n")
    (checkout / "setup.py").symlink_to("../train.py")
    context = build_context(checkout, {"context": "."})
    package = SourceDistribution.of(checkout, "digits", {"path": "."})
    digests = context.digest, package.tag
    with context.open() as archive:
        assert CANARY.encode() not in archive.read()
    (checkout / ".." / "train.py").write_text("changed")
    again = build_context(checkout, {"context": "."})
    assert (again.digest, SourceDistribution.of(checkout, "digits", {"path": "."}).tag) == digests


def test_names_act_on_no_terminal(checkout: Path) -> None:
    (checkout / "a:b.yaml").write_text('"\\e]0;owned\\a\\n  stacks/Pulumi.dev.yaml: fine": 1\nvars: []\n')
    (first, second) = problems(checkout, f'{LOCAL}  vertex-training:include: ["a:b.yaml"]\n')
    assert first.startswith("a:b.yaml:1: ") and "\\u001b]0;owned\\u0007\\n  stacks" in first
    assert second.startswith("a:b.yaml:2: vars: ")


def test_the_folder_of_git_is_found_upwards_only(checkout: Path) -> None:
    (checkout / ".git").rmdir()
    (problem,) = problems(checkout, INCLUDING, jobs="images: {digits: {context: ..}}")
    assert problem.endswith(OUTSIDE[1:])
