"""The program: one component has all resources of a stack, and a program may have two."""

import contextlib
import json
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pulumi
import pulumi_gcp
import pytest
import vertex_training
from pulumi.runtime import config
from vertex_training import (
    Completion,
    CustomJob,
    HyperparameterTuningJob,
    PythonPackage,
    Schedule,
    TrainingImage,
    TrainingPipeline,
    TrainingStack,
)
from vertex_training.errors import DeclarationErrors, ProjectNumberUnknown
from vertex_training.jobs.identity import own_labels
from vertex_training.settings import settings

from tests.blocks import taken
from tests.components.targets.gcp.graph import Graph, graph

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
JOBS = """\
customJobs:
  train:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          containerSpec: {imageUri: python}
"""
SPEC: Any = {
    "displayName": "a",
    "jobSpec": {
        "workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": "python"}}]
    },
}
CLOUD = {
    "vertex-training:target": "gcp",
    "vertex-training:project": "acme-dev",
    "vertex-training:projectNumber": "123456789012",
    "vertex-training:region": "europe-west4",
}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Graph]:
    """Returns what a program registers in a project of one job, with a configuration."""
    (tmp_path / "jobs.yaml").write_text(JOBS)

    def make(program: Callable[[], Any], *, is_preview: bool = False, **values: str) -> Graph:
        own = {"vertex-training:target": "local", "vertex-training:include": '["jobs.yaml"]', **values}
        monkeypatch.setattr("pulumi.runtime.get_config_env", lambda: own)
        monkeypatch.setattr(config, "CONFIG", ContextVar("config", default=own))
        with contextlib.chdir(tmp_path):
            return graph(program, preview=is_preview)

    return make


def test_a_public_name_is_there_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(vars(vertex_training), "TrainingStack")
    assert vertex_training.TrainingStack is TrainingStack


def test_everything_is_below_one_component(made: Callable[..., Graph]) -> None:
    found = made(lambda: TrainingStack("training"))
    assert found.parent("LocalFoundation/local") == "TrainingStack/training"
    assert found.parent("CustomJob/train") == "TrainingStack/training"
    roots = {name for name in found.requests if name.startswith("TrainingStack/") or not found.requests[name].parent}
    assert {name for name in roots if "Stack" not in name} == set()


def test_what_a_package_lacks_is_a_warning_of_the_preview(
    made: Callable[..., Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(pulumi, "warn", lambda text, *_: warned.append(text))
    (tmp_path / "p").mkdir()
    (tmp_path / "p/train.py").touch()
    (tmp_path / "p/pyproject.toml").write_text("[tool.poetry.dependencies]\nrich = '^13'\n")
    package = "images: {i: {package: {path: p, script: train.py, baseImage: python}}}\n"
    (tmp_path / "images.yaml").write_text(package)
    include = {"vertex-training:include": '["jobs.yaml", "images.yaml"]'}
    made(lambda: TrainingStack("training"), is_preview=True, **include)
    (warning,) = [text for text in warned if "poetry" in text]
    assert warning.startswith(
        "images.i.package: what pyproject.toml, [tool.poetry.dependencies] (rich) asks for is not"
    )


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The emulator's data folder."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("VERTEX_EMULATOR_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_a_preview_tells_the_emulator_nothing(made: Callable[..., Graph], data: Path) -> None:
    assert made(lambda: TrainingStack("training"), is_preview=True).of("CustomJob")
    assert [*data.iterdir()] == []


def test_the_emulator_is_told_where_jobs_are_declared(made: Callable[..., Graph], data: Path, tmp_path: Path) -> None:
    """Their labels are those that the submitted jobs have."""
    later = JOBS.replace("    jobSpec:", "    lifecycle: {run: scheduled}\n    jobSpec:").replace("train:", "later:")
    (tmp_path / "later.yaml").write_text(f'{later}schedules: {{nightly: {{cron: "0 2 * * *", job: later}}}}\n')
    found = made(lambda: TrainingStack("training"), **{"vertex-training:include": '["jobs.yaml", "later.yaml"]'})
    assert "jobs.yaml" not in str(found.inputs)
    (stack,) = json.loads((data / "declarations.json").read_text()).values()
    assert stack["folder"] == str(tmp_path)
    job, scheduled = stack["jobs"]
    assert (job["name"], job["place"]) == ("customJobs.train", "jobs.yaml:2")
    assert job["labels"].items() <= own_labels(found.inputs["CustomJob/train"]["owner"], "token").items()
    assert (scheduled["name"], scheduled["place"]) == ("customJobs.later", "later.yaml:2")
    ((request,),) = [each["jobs"] for each in found.of("EmulatorSchedule").values()]
    assert scheduled["labels"].items() <= request["body"]["labels"].items()


def test_options_of_the_component_reach_all_resources(made: Callable[..., Graph]) -> None:
    def rename(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult:
        seen.add(args.name)
        return pulumi.ResourceTransformResult(args.props, args.opts)

    seen: set[str] = set()
    options = pulumi.ResourceOptions(protect=True, transformations=[rename])
    found = made(lambda: TrainingStack("training", None, options))
    unprotected = [name for name, request in found.requests.items() if not request.protect]
    assert [name for name in unprotected if not name.startswith("Stack/")] == []
    assert {"training", "local", "emulator", "job-names", "train"} <= seen


def test_a_provider_of_the_component_reaches_all_cloud_resources(made: Callable[..., Graph]) -> None:
    def program() -> None:
        own = pulumi_gcp.Provider("own", project="acme-dev")
        TrainingStack("training", None, pulumi.ResourceOptions(providers=[own]))

    found = made(program, **CLOUD)
    cloud = {name: request.provider for name, request in found.requests.items() if request.type.startswith("gcp:")}
    assert cloud and {name for name, provider in cloud.items() if "::own::" not in provider} == set()


@pytest.mark.parametrize(
    ("options", "config", "key"),
    [
        ({"access_token": "canary"}, {}, "gcp:accessToken"),
        ({"credentials": "/canary"}, {}, "gcp:credentials"),
        ({"impersonate_service_account": "canary"}, {}, "gcp:impersonateServiceAccount"),
        ({}, {"gcp:impersonateServiceAccount": "canary"}, "gcp:impersonateServiceAccount"),
        ({"impersonate_service_account": "a@b"}, {"gcp:impersonateServiceAccount": "a@b"}, None),
    ],
)
def test_a_provider_of_another_identity_is_refused(
    made: Callable[..., Graph], options: dict[str, str], config: dict[str, str], key: str | None
) -> None:
    def program() -> None:
        own = pulumi_gcp.Provider("own", project="acme-dev", **options)  # type: ignore[arg-type]
        TrainingStack("training", None, pulumi.ResourceOptions(providers=[own]))

    if key is None:
        assert made(program, **CLOUD, **config).of("CustomJob")
        return
    with pytest.raises(pulumi.RunError) as refused:
        made(program, **CLOUD, **config)
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f'provider "own": {key}: differs from what jobs') and "canary" not in line


def test_a_program_s_job_takes_the_stack_s_foundation(made: Callable[..., Graph]) -> None:
    found = made(lambda: (TrainingStack("training"), CustomJob("own", SPEC)))
    assert found.needs("CustomJob/own") >= {"Ledger/job-names"}
    assert len(found.of("LocalFoundation")) == 1


def test_a_job_without_a_stack_makes_the_foundation_once(made: Callable[..., Graph]) -> None:
    found = made(lambda: [CustomJob(name, SPEC) for name in ("a", "b")])
    assert found.needs("CustomJob/a") == found.needs("CustomJob/b") == {"Ledger/job-names"}
    assert len(found.of("LocalFoundation")) == 1


def test_two_regions_share_no_name(made: Callable[..., Graph]) -> None:
    def program() -> None:
        TrainingStack("training")
        TrainingStack("us", {"region": "us-central1", "prefix": "us-"})

    found = made(program, **CLOUD)
    jobs = found.of("CustomJob")
    assert {name: each["parent"].rpartition("/")[2] for name, each in jobs.items()} == {
        "CustomJob/train": "europe-west4",
        "CustomJob/us-train": "us-central1",
    }
    ledgers = found.of("Ledger")
    assert sorted([*each["jobs"]] for each in ledgers.values()) == [["train"], ["us-train"]]
    for kind, field in (("Bucket", "name"), ("Repository", "repositoryId"), ("Account", "accountId")):
        names = [each[field] for each in found.of(kind).values()]
        assert len(names) == len({*names}) == 2, kind


def test_a_second_stack_needs_a_prefix(made: Callable[..., Graph]) -> None:
    with pytest.raises(pulumi.RunError, match=r'TrainingStack "us": prefix: must differ from that of .*"training"'):
        made(lambda: (TrainingStack("training"), TrainingStack("us")))


@pytest.mark.parametrize("target", [{}, CLOUD], ids=["local", "gcp"])
def test_a_stack_comes_before_jobs_without_a_foundation(made: Callable[..., Graph], target: dict[str, str]) -> None:
    with pytest.raises(pulumi.RunError, match=r'TrainingStack "training": must be made before the first resource'):
        made(lambda: (CustomJob("a", SPEC), TrainingStack("training")), **target)


def test_a_stack_with_a_prefix_may_come_later(made: Callable[..., Graph]) -> None:
    found = made(lambda: (CustomJob("a", SPEC), TrainingStack("training", {"prefix": "later-"})))
    assert found.of("LocalFoundation").keys() == {"LocalFoundation/local", "LocalFoundation/later-local"}
    assert found.parent("CustomJob/later-train") == "TrainingStack/training"


def test_all_names_of_a_stack_had_its_former_prefix(made: Callable[..., Graph]) -> None:
    (program,) = taken("docs/moving.md", "python", "east = vt.TrainingStack")
    found = made(lambda: exec(program, {"vt": vertex_training}), **CLOUD)
    before = {name: {each.spec.name for each in request.aliases} for name, request in found.requests.items()}
    named = {name: aliases for name, aliases in before.items() if "/east-" in name}
    assert {"CustomJob/east-train", "Ledger/east-job-names", "GcpFoundation/east-gcp"} <= named.keys()
    for name, aliases in named.items():
        assert f"west-{name.partition('/east-')[2]}" in aliases, name


@pytest.mark.parametrize("is_first", [True, False])
def test_a_former_prefix_is_nobody_else_s(made: Callable[..., Graph], is_first: bool) -> None:
    east: Any = {"prefix": "east-", "formerly": "west-"}
    west: Any = {"prefix": "west-"}
    args = [east, west] if is_first else [west, east]
    with pytest.raises(pulumi.RunError, match=r'prefix: must differ from that of .* \("west-"\)'):
        made(lambda: [TrainingStack(f"stack{number}", each) for number, each in enumerate(args)])


def late() -> Any:
    return pulumi.Output.from_input("later")


OPTS: tuple[dict[str, Any], str] = ({"opts": {}}, "opts: {} must be a pulumi.ResourceOptions")
FOUNDATION = ({"foundation": "x"}, "foundation: 'x' must be the `foundation` of a TrainingStack")
SECRETS = ({"secrets": ["a"]}, "secrets: must be an object with named fields")


@pytest.mark.parametrize(
    ("component", "wrong", "message"),
    [
        (TrainingStack, *OPTS),
        *((TrainingImage, *each) for each in (OPTS, FOUNDATION, SECRETS)),
        *((component, *each) for component in (PythonPackage, Schedule) for each in (OPTS, FOUNDATION)),
    ],
)
def test_a_wrong_keyword_is_one_line(
    made: Callable[..., Graph], component: type, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeclarationErrors) as caught:
        made(lambda: component("west", {}, **wrong), is_preview=True)
    (problem,) = caught.value.problems
    assert str(problem) == f'{component.__name__} "west": {message}'


@pytest.mark.parametrize(
    "cls",
    [
        CustomJob,
        HyperparameterTuningJob,
        TrainingPipeline,
        Completion,
        TrainingImage,
        PythonPackage,
        Schedule,
        TrainingStack,
    ],
)
@pytest.mark.parametrize(
    ("values", "keywords", "message"),
    [
        (("x", {}), {"optss": None}, ' "x": optss: is no argument of it; did you mean opts?'),
        (("x", {}), {"dependson": []}, ' "x": dependson: is an option; give opts=pulumi.ResourceOptions(depends_on=…)'),
        (("x", {}), {"cronn": ""}, ' "x": cronn: is no argument of it; known: '),
        ((), {"name": "x", "parent": None}, ' "x": parent: is an option; give opts=pulumi.ResourceOptions(parent=…)'),
        ((), {"opts": None}, ": missing a required argument: 'name'"),
        (("x", {}, None, None), {}, ' "x": too many positional arguments'),
    ],
)
def test_a_misspelt_keyword_is_one_line(
    made: Callable[..., Graph], cls: type, values: Any, keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeclarationErrors) as caught:
        made(lambda: cls(*values, **keywords), is_preview=True)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{cls.__name__}{message}")


def test_misspelt_keywords_are_all_named(made: Callable[..., Graph]) -> None:
    with pytest.raises(DeclarationErrors) as caught:
        made(lambda: CustomJob("x", SPEC, life_cycle={}, secret={}))  # type: ignore[call-arg]
    assert [each.path for each in caught.value.problems] == ["life_cycle", "secret"]


NAME_FORM = 'must be lower-case letters, digits, "-", "_" and ".", at most 63'


@pytest.mark.parametrize(
    ("component", "arguments", "name", "message"),
    [
        (TrainingImage, {"context": "."}, "My Image", f'"My Image" {NAME_FORM}'),
        (TrainingImage, {"context": "."}, "a..b", '"a..b" is a name that no registry takes; separate words by'),
        (PythonPackage, {"script": "train.py"}, "../up", f'"../up" {NAME_FORM}'),
        (Schedule, {"cron": "0 2 * * *", "jobs": {}}, "Each Night", f'"Each Night" {NAME_FORM}'),
        (CustomJob, SPEC, "My Job", f'"My Job" {NAME_FORM}'),
        (TrainingStack, None, 3, "name: must be a text"),
        (TrainingImage, {"context": "."}, 3, "name: must be a text"),
        (PythonPackage, {"script": "train.py"}, 3, "name: must be a text"),
        (Schedule, {"cron": "0 2 * * *", "jobs": {}}, 3, "name: must be a text"),
        (CustomJob, SPEC, 3, "name: must be a text"),
    ],
)
def test_a_bad_name_is_one_line(
    made: Callable[..., Graph], tmp_path: Path, component: type, arguments: Any, name: Any, message: str
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python\n")
    (tmp_path / "train.py").touch()
    with pytest.raises(DeclarationErrors) as caught:
        made(lambda: component(name, arguments), is_preview=True)
    assert str(caught.value.problems[0]).startswith(f'{component.__name__} "{name}": {message}')


SLIPS: list[tuple[Callable[[str, Any], object], Any, str]] = [
    (TrainingStack, {"regoin": "us-west1"}, "regoin: unknown field; did you mean region?"),
    (TrainingStack, {"guardrails": {"maxHourlyCosts": 1}}, "guardrails.maxHourlyCosts: unknown field; did you mean"),
    (TrainingStack, {"region": 3}, 'region: "3" is not the name of a region'),
    (TrainingStack, {"include": ["none.yaml"]}, 'include[0]: "none.yaml" matches no file'),
    (TrainingStack, {"customJobs": {"x": {"jobSpc": {}}}}, "customJobs.x.jobSpc: unknown field; did you mean jobSpec?"),
    (TrainingStack, lambda: {"vars": {"a": [late()]}}, "vars.a[0]: is an Output, and is read before outputs are known"),
    (TrainingStack, {"include": [Path("a")]}, "include[0]: PosixPath('a') must be a text, a number"),
    (TrainingStack, {"prefix": "West "}, 'prefix: "West " is not what names begin with'),
    (TrainingStack, {"formerly": "West "}, 'formerly: "West " is not what names begin with'),
    (TrainingStack, ["region"], "must be an object with named fields"),
    (TrainingImage, {"contxt": "."}, "contxt: unknown field; did you mean context?"),
    (TrainingImage, lambda: {"context": late()}, "context: is an Output, and is read before"),
    (TrainingImage, {"context": "none"}, 'context: "none" is not a folder in '),
    (TrainingImage, {"uri": "python"}, "uri: names an image that is built elsewhere"),
    (TrainingImage, {"stack": "dev"}, "stack: names an image that is built elsewhere"),
    (TrainingImage, {"context": ".", "package": {"path": ".", "baseImage": "python"}}, "needs exactly one of: "),
    (PythonPackage, {"pth": "."}, "pth: unknown field; did you mean path?"),
    (PythonPackage, {"path": "none"}, 'path: "none" is not a folder with a pyproject.toml'),
    (Schedule, {"crn": "0 2 * * *", "jobs": {}}, "crn: unknown field; did you mean cron?"),
    (
        Schedule,
        {"cron": "0 2 * * *", "timezone": "UTC", "jobs": {}},
        "timezone: unknown field; did you mean time_zone?",
    ),
    (Schedule, {"cron": "0 2 * * *", "jobs": {"a": SPEC}}, "jobs.a: must be a JobTemplate"),
    (Schedule, lambda: {"cron": late(), "jobs": {}}, "cron: is an Output"),
    (Schedule, {}, "cron: is required"),
]


@pytest.mark.parametrize(("component", "arguments", "message"), SLIPS)
def test_a_slip_names_the_component_and_argument(
    made: Callable[..., Graph], component: type, arguments: Any, message: str
) -> None:
    with pytest.raises(DeclarationErrors) as caught:
        made(lambda: component("west", arguments() if callable(arguments) else arguments), is_preview=True, **CLOUD)
    assert f'{component.__name__} "west": {message}' in str(caught.value)


def test_a_slip_of_the_stack_file_names_that(made: Callable[..., Graph]) -> None:
    own: Any = {"region": "us-west1", "regoin": "us-west1"}
    with pytest.raises(DeclarationErrors) as caught:
        made(lambda: TrainingStack("west", own), **CLOUD, **{"vertex-training:lables": "{}"})
    places = [each.place for each in caught.value.problems]
    assert sorted(places) == ['TrainingStack "west"', "stacks/Pulumi.stack.yaml"]


@pytest.mark.parametrize(
    ("own", "region"), [({}, "europe-west4"), ({"vertex-training:region": "us-central1"}, "us-central1")]
)
def test_project_and_region_default_to_the_provider_s(
    made: Callable[..., Graph], own: dict[str, str], region: str
) -> None:
    provider = {"gcp:project": "acme-dev", "gcp:region": "europe-west4"}
    number = {"vertex-training:target": "gcp", "vertex-training:projectNumber": "123456789012"}
    found = made(lambda: TrainingStack("training"), **number, **provider, **own)
    (job,) = found.of("CustomJob").values()
    assert job["parent"].endswith(f"projects/acme-dev/locations/{region}")


def test_a_missing_project_number_is_looked_up(made: Callable[..., Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def number(project: str) -> str:
        asked.append(project)
        return "123456789012"

    monkeypatch.setattr("vertex_training.settings.settings._ask_number", number)
    without = {name: value for name, value in CLOUD.items() if "Number" not in name}
    found = made(lambda: TrainingStack("training"), **without)
    assert asked == ["acme-dev"]
    assert any("service-123456789012@" in str(each) for each in found.inputs.values())


def test_a_given_project_number_is_not_looked_up(made: Callable[..., Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("vertex_training.settings.settings._ask_number")
    made(lambda: TrainingStack("training"), **CLOUD)


def test_an_unknown_project_number_is_one_line(made: Callable[..., Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(project: str) -> str:
        raise RuntimeError("no credentials\nmore")

    monkeypatch.setattr("vertex_training.settings.settings._ask_number", refuse)
    without = {name: value for name, value in CLOUD.items() if "Number" not in name}
    with pytest.raises(
        ProjectNumberUnknown, match=r"projectNumber: is not given, .*acme-dev \(no credentials\); `gcloud"
    ):
        made(lambda: TrainingStack("training"), **without)


LIMITED = {**CLOUD, "vertex-training:region": "us-central1", "vertex-training:guardrails": '{"maxHourlyCost": 0.6}'}
"""One n1-standard-4 in us-central1 is 0.25 USD an hour."""
WEST: Any = {"region": "us-west1", "prefix": "west-", "prices": {
    "asOf": "2026-11-01", "source": "our contract", "vcpu": {"N1": {"us-west1": 0.1}}, "gb": {"N1": {"us-west1": 0.0}},
    "disk": {"pd-ssd": {"us-west1": 0.0}},
}}  # fmt: skip


def test_limits_of_cost_count_all_stacks(made: Callable[..., Graph]) -> None:
    """0.25 USD an hour here, and 0.40 there."""
    with pytest.raises(DeclarationErrors) as refused:
        made(lambda: (TrainingStack("training"), TrainingStack("west", WEST)), is_preview=True, **LIMITED)
    (problem,) = refused.value.problems
    assert problem.message == (
        "0.65 USD an hour by list price; allowed: 0.60 for all jobs; most expensive: west-train 0.40, train 0.25"
    )


def test_limits_of_cost_count_jobs_on_another_foundation(made: Callable[..., Graph]) -> None:
    def program() -> None:
        TrainingStack("training")
        west = TrainingStack("west", {**WEST, "include": []})
        CustomJob("own", SPEC, foundation=west.foundation)

    with pytest.raises(DeclarationErrors, match=r"maxHourlyCost: 0\.65 USD an hour by list price; allowed: 0\.60"):
        made(program, is_preview=True, **LIMITED)


@pytest.mark.parametrize(
    ("guardrails", "said"),
    [
        ({}, 'TrainingStack "free": guardrails: is empty, so it limits nothing; take the key away'),
        ({"maxHourlyCost": 9}, 'TrainingStack "free": guardrails.maxHourlyCost: 9.0 is looser than the 0.6 of'),
        ({"requireTimeout": True}, "customJobs.train: guardrails.maxHourlyCost"),
    ],
)
def test_an_argument_leaves_the_limits_of_the_stack_file(
    made: Callable[..., Graph], guardrails: Any, said: str
) -> None:
    own = {**WEST, "prefix": "free-", "prices": {**WEST["prices"], "vcpu": {"N1": {"us-west1": 1}}}}
    with pytest.raises(DeclarationErrors) as refused:
        made(
            lambda: (TrainingStack("training"), TrainingStack("free", {**own, "guardrails": guardrails})),
            is_preview=True,
            **LIMITED,
        )
    assert said in str(refused.value)


def test_a_ledger_has_what_holds_for_its_jobs(made: Callable[..., Graph]) -> None:
    west: Any = {**WEST, "guardrails": {"maxReplicas": 2}, "submissionsPerMinute": 10}
    limited = {**LIMITED, "vertex-training:guardrails": '{"maxHourlyCost": 2}'}
    found = made(lambda: (TrainingStack("training"), TrainingStack("west", west)), is_preview=True, **limited)
    home, there = (found.inputs[f"Ledger/{name}"]["settings"] for name in ("job-names", "west-job-names"))
    assert home["guardrails"] == [{"source": "", "rules": {"maxHourlyCost": 2.0}}]
    assert there["guardrails"] == [
        *home["guardrails"],
        {"source": 'TrainingStack "west"', "rules": {"maxReplicas": 2}, "own": True},
    ]
    assert len(home["guardrailsDigest"]) == 16 and home["guardrailsDigest"] != there["guardrailsDigest"]
    assert (home["region"], there["region"]) == ("us-central1", "us-west1")
    assert (there["prefix"], there["submissionsPerMinute"], there["prices"]["source"]) == ("west-", 10, "our contract")
    assert "prices" not in home


def test_an_argument_cannot_extend_another_file(made: Callable[..., Graph]) -> None:
    extending: Any = {"extends": "loose.yaml"}
    with pytest.raises(DeclarationErrors, match='TrainingStack "training": extends: is for the stack file'):
        made(lambda: TrainingStack("training", extending))


@pytest.mark.parametrize(("kept", "form", "between"), [(" | ", "full", "\n"), ("\n", "brief", " | ")])
def test_records_of_earlier_runs_are_read_in_both_forms(
    made: Callable[..., Graph], monkeypatch: pytest.MonkeyPatch, kept: str, form: str, between: str
) -> None:
    runs = [f"2026-01-0{day}T00:00:00Z 60 s on 1 n1-standard-4: 0.02 USD at 1.0000 an hour" for day in (1, 2)]
    exported: list[str] = []

    def program() -> None:
        read = TrainingStack("training").outputs["runs"]
        read.apply(lambda found: exported.append(found["train"]))

    monkeypatch.setattr(settings.state, "read_texts", lambda _: lambda: {"train": kept.join(runs)})
    made(program, **{"vertex-training:outputs": form})
    assert exported == [between.join(runs)]
