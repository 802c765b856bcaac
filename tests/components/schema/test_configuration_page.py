"""The configuration page describes each field of declarations and stack files, with its default."""

import json
import re
from pathlib import Path
from typing import Any, Required, get_origin, get_type_hints

import pytest
import yaml
from typing_extensions import is_typeddict
from vertex_training.errors import DeclarationErrors
from vertex_training.images.image import DEFAULT_PLATFORM
from vertex_training.schema import shapes
from vertex_training.settings.settings import Settings

from tests.blocks import taken
from tests.components.projects import CLOUD, INCLUDING, load, problems, write
from vertex_api.validation.shape import canonicalize

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
SECTIONS = {
    "Stack": "Stack file",
    "SharedFile": "Shared file",
    "Emulator": "Emulator",
    "Guardrails": "Guardrails",
    "Prices": "Prices",
    "Registry": "Registry",
    "Builder": "Builder",
    "CloudBuild": "Cloud Build",
    "Identity": "Identity",
    "Bucket": "Bucket",
    "Network": "Network",
    "Peering": "Peering",
    "Attachment": "Attachment",
    "DnsPeering": "DNS peering",
    "PersistentResource": "Persistent resource",
    "ResourcePool": "Resource pool",
    "AutoscalingSpec": "Autoscaling",
    "Tensorboard": "TensorBoard",
    "CloudScheduling": "Scheduling",
    "ScheduleAccount": "Accounts of schedules",
    "Alerts": "Alerts",
    "Declarations": "Declarations",
    "Image": "Images",
    "Data": "Data",
    "SpecFile": "Spec files",
    "Package": "Images without a Dockerfile",
    "PythonPackage": "Packages",
    "Lifecycle": "Lifecycle",
    "Rehearse": "Rehearse",
    "Schedule": "Schedules",
}


def section(heading: str) -> str:
    """The text below a heading, up to the next one."""
    (found,) = re.findall(rf"^##+ {heading}\n(.*?)(?=^##+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def rows(heading: str) -> dict[str, list[str]]:
    """The cells of a section's table by the key in the first column."""
    found = re.findall(r"^\| `([^`]+)` \|(.*)\|$", section(heading), re.MULTILINE)
    return {key: [cell.strip() for cell in cells.split("|")] for key, cells in found}


def fields(name: str) -> set[str]:
    own = set(getattr(shapes, name).__annotations__)
    return own - set(shapes.Declarations.__annotations__) if name == "Stack" else own


def test_every_shape_has_its_section() -> None:
    own = {
        name
        for name, value in vars(shapes).items()
        if is_typeddict(value) and value.__module__.startswith("vertex_training.schema.")
    }
    of_others = {"Cloud", "_StackKeys", "TrainingStackArgs", "Former"}
    assert own - {"ClosedTypedDict", *of_others} == SECTIONS.keys()


@pytest.mark.parametrize("name", SECTIONS)
def test_the_page_describes_exactly_the_shape_s_fields(name: str) -> None:
    assert rows(SECTIONS[name]).keys() == fields(name)


@pytest.mark.parametrize("name", SECTIONS)
def test_every_field_is_fully_described(name: str) -> None:
    for key, cells in rows(SECTIONS[name]).items():
        assert len(cells) == 4, key
        type_, _, meaning, edit = cells
        assert type_ and meaning and edit, key


@pytest.mark.parametrize("name", SECTIONS)
def test_exactly_the_required_fields_are_called_required(name: str) -> None:
    hints = get_type_hints(getattr(shapes, name), include_extras=True)
    found = {key for key, cells in rows(SECTIONS[name]).items() if cells[1] == "required"}
    assert found == {key for key in fields(name) if get_origin(hints[key]) is Required}


def test_the_page_has_the_program_s_defaults(tmp_path: Path) -> None:
    defaults = {key: json.loads(cells[1].strip("`")) for key, cells in rows("Lifecycle").items() if cells[1] != "none"}
    assert defaults == {key: each.default for key, each in shapes.LIFECYCLE.items() if each.default is not None}
    assert rows("Images")["platform"][1] == f"`{DEFAULT_PLATFORM}`"
    settings = Settings.load_from_config("team", "dev", tmp_path, {"vertex-training:target": "local"})
    stack = rows("Stack file")
    assert stack["project"][1] == f"`gcp:project`, else `{settings.project}`; required by `gcp`"
    assert stack["region"][1] == f"`gcp:region`, else `{settings.region}`; required by `gcp`"


@pytest.mark.parametrize(
    ("user", "declaration"),
    [
        (
            "jobs",
            "customJobs: {a: {jobSpec: {workerPoolSpecs: [{machineSpec: {machineType: n1-standard-4}, "
            "containerSpec: {imageUri: i, args: ['${x.y}']}}]}}}",
        ),
        ("images", "images: {a: {uri: '${x.y}'}}"),
        ("packages", "packages: {a: {script: a.py, requirements: ['${x.y}']}}"),
    ],
)
def test_the_page_lists_the_known_references(tmp_path: Path, user: str, declaration: str) -> None:
    described = {
        reference for reference, (_, places) in rows("References").items() if user in re.findall(r"\w+", places)
    }
    (problem,) = problems(tmp_path, INCLUDING, jobs=declaration, **{"a.py": ""})
    assert set(re.findall(r"\$\{\w+\.NAME(?:\.RESULT)?\}", problem)) == described


FILES: dict[str, str] = dict(re.findall(r"^```yaml\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
SHARING = ("platform/train.yaml", "stacks/Pulumi.prod.yaml")


def example(root: Path, *slips: tuple[str, str]) -> Settings:
    """The settings of the page's files, with other words in them."""
    files = {name: text for name, text in FILES.items() if name not in SHARING}
    assert list(files) == ["training/digits.yaml", "stacks/Pulumi.dev.yaml", "training/best.yaml"]
    for right, wrong in slips:
        files = {name: text.replace(right, wrong, 1) for name, text in files.items()}
    write(root, {**files, "examples/digits/Dockerfile": "FROM scratch"})
    given = yaml.safe_load(files["stacks/Pulumi.dev.yaml"])["config"]
    given["vertex-training:secrets"] = dict.fromkeys(given["vertex-training:secrets"], "decrypted")
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    return Settings.load_from_config("team", "dev", root, config)


def test_the_example_of_the_page_is_right(tmp_path: Path) -> None:
    (job,) = example(tmp_path).jobs
    assert job.job.fields["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == ["--epochs=2"]


def test_the_page_s_shared_file_is_right(tmp_path: Path) -> None:
    shared, stack = (FILES[name] for name in SHARING)
    place = CLOUD.replace("config:\n", "").replace("  vertex-training:target: gcp\n", "")
    plan = load(tmp_path, f"{stack}{place}", "prod", **{SHARING[0]: shared}).plan
    assert plan.labels == {"cost-center": "4711"}
    assert plan.guardrails == yaml.safe_load(shared)["guardrails"]


def test_the_page_shows_the_printed_problems(tmp_path: Path) -> None:
    with pytest.raises(DeclarationErrors) as refused:
        example(tmp_path, ("vars: {epochs: 2}", "vars: {epoch: 2}"), ("${images.digits}", "${images.digit}"))
    assert taken("docs/configuration.md", "output", "2 problems") == [f"{refused.value}\n"]


@pytest.mark.parametrize("lifecycle", [{}, {"wait": True, "onDelete": "keep", "rerun": 3}, {"rerun": "3"}])
def test_a_lifecycle_is_canonical(lifecycle: dict[str, Any]) -> None:
    found, problems = canonicalize(shapes.Lifecycle, lifecycle)
    assert problems == []
    assert found == ({**lifecycle, "rerun": "3"} if "rerun" in lifecycle else {})


def test_a_lifecycle_requires_a_positive_deadline() -> None:
    assert canonicalize(shapes.Lifecycle, {"deadline": "07200.50s", "adopt": 77}) == (
        {"deadline": "7200.500s", "adopt": "77"},
        [],
    )
    for wrong in ("0s", "-5s", "2h", 7200):
        _, (problem,) = canonicalize(shapes.Lifecycle, {"deadline": wrong})
        assert problem.place == "deadline"
