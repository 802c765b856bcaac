"""What runs when something is renamed, relabelled or moved: whole programs against the providers, without an engine."""

import copy
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime import mocks
from vertex_training import CustomJob
from vertex_training.data import lock
from vertex_training.errors import SubmitFailed
from vertex_training.jobs import moves
from vertex_training.jobs.identity import training_digests
from vertex_training.jobs.inputs import REPLACING
from vertex_training.jobs.ledger import LedgerProvider
from vertex_training.jobs.provider import JobProvider
from vertex_training.plan.plan import Plan
from vertex_training.plan.programmed import Program
from vertex_training.plan.training import Defaults
from vertex_training.runtime import engine, holders
from vertex_training.settings.settings import _with_former
from vertex_training.stack import Images, Jobs, Packages, Sources

from tests.blocks import taken
from tests.components.fakes import Ground, start_new_process
from tests.components.jobs.test_provider import ARGS, PROVIDERS, engine_s
from tests.components.projects import INCLUDING, load, problems, write
from tests.components.targets.gcp.graph import graph
from tests.vertex_api.jobs import custom_job, edited
from vertex_api.names import CUSTOM_JOB

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
URN = "urn:pulumi:dev::team::pulumi-python:dynamic/vertex-training:CustomJob::train"
BY_TYPE: Mapping[str, JobProvider] = {provider.kind.type: provider for provider in PROVIDERS.values()}


@dataclass
class Engine:
    """Does with jobs what Pulumi's engine does: the state is found by name or alias, and asked what is replaced."""

    state: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """By name of a job its id and inputs."""
    ran: list[str] = field(default_factory=list)
    """The jobs that the last update has submitted."""
    updated: list[str] = field(default_factory=list)

    def up(self, program: Callable[[], Any], ground: Ground | None = None, stack: str = "dev") -> list[str]:
        """Runs a program, and returns the jobs that it submits."""
        start_new_process()
        olds, self.state, self.ran, self.updated = self.state, {}, [], []

        def register(args: mocks.MockResourceArgs, former: list[str]) -> tuple[str | None, dict[str, Any]]:
            provider = BY_TYPE.get(args.typ.rpartition(":")[2])
            if provider is None:
                return f"{args.name}-id", dict(args.inputs)
            old = next((olds.pop(name) for name in (args.name, *former) if name in olds), None)
            given = engine_s({key: value for key, value in args.inputs.items() if value is not None})
            if "secrets" in given:  # of the engine, in the clear for a provider
                given["secrets"] = given["secrets"]["value"]
            given["owner"] = given["owner"].replace("/stack/", f"/{stack}/")
            checked = provider.check(engine_s(old[1]) if old else {}, given)
            assert [(each.property, each.reason) for each in checked.failures] == []
            id_, inputs = old[0] if old else "", checked.inputs
            if old and all(old[1].get(key) == inputs.get(key) for key in REPLACING):
                self.updated += [args.name] if old[1] != inputs else []
            else:
                again = provider.check({}, given)  # as the engine does for a replacement
                id_, inputs = f"projects/p/locations/r/{provider.kind.collection}/{len(IDS)}", again.inputs
                IDS.append(id_)
                self.ran.append(args.name)
            self.state[args.name] = (id_, inputs)
            return id_, {**inputs, "run": {"name": id_, "state": "JOB_STATE_SUCCEEDED"}}

        graph(lambda: program(), engine=register)
        self.updated.sort()
        return sorted(self.ran)

    def inputs(self, name: str) -> dict[str, Any]:
        return self.state[name][1]

    def folder(self, name: str) -> str:
        return str(self.inputs(name)["spec"]["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"])


IDS: list[str] = []
HAVE_RUN: dict[str, tuple[str, dict[str, Any]]] = {}
"""The state after the twenty jobs have run, which is the same in every folder."""


def ground(labels: Mapping[str, str] | None = None, staging: str = "gs://staging", **stack: Any) -> Ground:
    plan = Plan({"target": "local", "project": "p", **stack})
    return Ground(defaults=Defaults(staging, labels=labels or {}), program=Program(plan))


JOB = """\
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {{machineType: n1-standard-4}}
          containerSpec: {{imageUri: "{image}", args: [{args}]}}
"""


def job(name: str, args: str = "", image: str = "${images.digits}", **keys: str) -> str:
    above = "".join(f"    {key}: {value}\n" for key, value in keys.items())
    return f"  {name}:\n{above}{JOB.format(image=image, args=args)}"


PACKAGED = """\
  packaged:
    jobSpec:
      workerPoolSpecs:
        - machineSpec: {machineType: n1-standard-4}
          pythonPackageSpec: {executorImageUri: python:3.11, packageUris: ["${packages.PACKAGE}"], pythonModule: m}
"""
SEARCH = """\
hyperparameterTuningJobs:
  tune:
    studySpec:
      metrics: [{metricId: loss, goal: MINIMIZE}]
      parameters: [{parameterId: rate, doubleValueSpec: {minValue: 0.1, maxValue: 1}}]
    maxTrialCount: 1
    parallelTrialCount: 1
    trialJobSpec:
      workerPoolSpecs: [{machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: "python:3.11"}}]
"""
PIPELINE = """\
trainingPipelines:
  release:
    trainingTaskInputs:
      workerPoolSpecs: [{machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: "python:3.11"}}]
    modelToUpload: {containerSpec: {imageUri: "python:3.11"}}
"""
TWENTY = (
    "images: {digits: {context: trainer}}\npackages: {code: {path: code}}\ndata: {train: {uri: data/}}\ncustomJobs:\n"
    + job("a", '"${data.train}"')
    + job("b", '"${jobs.a.modelDir}", "${jobs.a.name}"')
    + job("c", '"${jobs.b.modelDir}", "--rate=${jobs.tune.bestTrial.parameters.rate}"')
    + PACKAGED.replace("PACKAGE", "code")
    + "".join(job(f"job{number}", f'"--seed={number}"') for number in range(14))
    + SEARCH
    + PIPELINE
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(
        tmp_path,
        {
            "trainer/Dockerfile": "FROM python:3.11\nCOPY . .\n",
            "trainer/train.py": "print(1)\n",
            "code/pyproject.toml": "[project]\nname = 'code'\nversion = '1'\n",
            "code/m.py": "print(1)\n",
            "data/train.csv": "1,2\n",
        },
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def declared(root: Path, text: str, on: Ground | None = None, prefix: str = "team") -> Callable[[], Any]:
    """The program of a stack with declarations."""
    settings = load(root, INCLUDING, jobs=text)
    on = on or ground()
    on.image_uri_prefix = f"localhost/{prefix}"
    summary = {"objects": 1, "bytes": 4, "digest": "00ff"}
    data = {
        each.name: lock.LockedData(each.uri, {"uri": each.uri, **summary}, "error") for each in settings.data.values()
    }

    def make() -> None:
        sources = Sources(Images(settings, on), Packages(settings, on))
        Jobs(settings, on, sources, data=data)

    return make


@pytest.fixture
def run(root: Path) -> Engine:
    """A stack of twenty jobs that have run."""
    engine = Engine()
    if not HAVE_RUN:
        assert len(engine.up(declared(root, TWENTY))) == 20
        assert (engine.up(declared(root, TWENTY)), engine.updated) == ([], [])
        HAVE_RUN.update(engine.state)
    engine.state = copy.deepcopy(HAVE_RUN)
    return engine


def test_stack_labels_wait_for_the_next_run(run: Engine, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labelled = ground({"team": "vision"})
    before = {name: run.inputs(name)["spec"] for name in run.state}
    assert run.up(declared(root, TWENTY, labelled)) == []
    assert len(run.updated) == 20
    assert run.inputs("a")["nextRun"] == {"labels": {"team": "vision"}}
    assert {name: run.inputs(name)["spec"] for name in run.state} == before
    assert (run.up(declared(root, TWENTY, ground({"team": "vision"}))), run.updated) == ([], [])
    edited_text = TWENTY.replace("--seed=3", "--seed=33")
    assert run.up(declared(root, edited_text, ground({"team": "vision"}))) == ["job3"]
    assert run.inputs("job3")["spec"]["labels"] == {"team": "vision"} and "nextRun" not in run.inputs("job3")


def test_a_key_runs_relabelled_jobs_again(run: Engine, root: Path) -> None:
    assert len(run.up(declared(root, TWENTY, ground({"team": "vision"}, relabel="run")))) == 20


def test_own_labels_and_display_names_wait_too(run: Engine, root: Path) -> None:
    text = TWENTY.replace("  a:\n", "  a:\n    displayName: first\n    labels: {owner: me}\n")
    text = text.replace("  release:\n", "  release:\n    displayName: weekly\n")
    assert (run.up(declared(root, text)), run.updated) == ([], ["a", "release"])
    assert run.inputs("a")["nextRun"] == {"displayName": "first", "labels": {"owner": "me"}}
    assert (run.up(declared(root, TWENTY)), run.updated) == ([], ["a", "release"])
    assert "nextRun" not in run.inputs("a")


RENAMES = {
    "an upstream job": [("  a:\n", "  first:\n    formerly: a\n"), ("${jobs.a.", "${jobs.first.")],
    "a search": [("  tune:\n", "  search:\n    formerly: [tune]\n"), ("${jobs.tune.", "${jobs.search.")],
    "a pipeline": [("  release:\n", "  weekly:\n    formerly: release\n")],
    "an image": [("{digits: {", "{numbers: {formerly: digits, "), ("${images.digits}", "${images.numbers}")],
    "an image without the key": [("{digits: {", "{numbers: {"), ("${images.digits}", "${images.numbers}")],
    "a package": [("{code: {", "{wheel: {formerly: code, "), ("${packages.code}", "${packages.wheel}")],
    "a package without the key": [("{code: {", "{wheel: {"), ("${packages.code}", "${packages.wheel}")],
    "data": [("{train: {", "{rows: {formerly: train, "), ("${data.train}", "${data.rows}")],
}


@pytest.mark.parametrize("what", RENAMES)
def test_a_renamed_thing_runs_nothing(run: Engine, root: Path, what: str) -> None:
    text = TWENTY
    for old, new in RENAMES[what]:
        assert old in text
        text = text.replace(old, new)
    before = {id_: each["spec"] for id_, each in run.state.values()}
    assert run.up(declared(root, text)) == []
    assert (run.up(declared(root, text)), run.updated) == ([], [])
    # The key may go once all stacks have it.
    without = re.sub(r"    formerly: .*\n|formerly: \w+, ", "", text)
    assert (run.up(declared(root, without)), run.updated) == ([], [])
    assert {id_: each["spec"] for id_, each in run.state.values()} == before


def test_a_renamed_job_without_the_key_runs_again(run: Engine, root: Path) -> None:
    text = TWENTY.replace("  job3:\n", "  job33:\n")
    assert run.up(declared(root, text)) == ["job33"]


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("--seed=3", "--seed=33", ["job3"]),
        ("  a:\n", "  a:\n    lifecycle: {rerun: 1}\n", ["a", "b", "c"]),
        ("  tune:\n", "  tune:\n    lifecycle: {rerun: 1}\n", ["c", "tune"]),
        ("uri: data/", "uri: data/train.csv", ["a", "b", "c"]),
    ],
)
def test_a_rename_with_an_edit_runs_the_edited_alone(
    run: Engine, root: Path, old: str, new: str, again: list[str]
) -> None:
    text = TWENTY.replace("{digits: {", "{numbers: {").replace("${images.digits}", "${images.numbers}")
    assert run.up(declared(root, text.replace(old, new), ground({"team": "vision"}))) == again


def test_a_new_content_under_a_new_name_runs(run: Engine, root: Path) -> None:
    write(root, {"trainer/train.py": "print(2)\n", "code/m.py": "print(2)\n"})
    text = TWENTY.replace("{digits: {", "{numbers: {formerly: digits, ").replace(
        "${images.digits}", "${images.numbers}"
    )
    text = text.replace("{code: {", "{wheel: {formerly: code, ").replace("${packages.code}", "${packages.wheel}")
    assert set(run.state) - set(run.up(declared(root, text))) == {"tune", "release"}


def test_an_image_of_another_name_and_tag_that_is_not_built_here_runs() -> None:
    engine = Engine()

    def using(image: str) -> Callable[[], Any]:
        spec = edited(custom_job(), *ARGS[:-1], "imageUri", to=image)
        return lambda: CustomJob("train", spec, foundation=ground())  # type: ignore[arg-type]

    assert engine.up(using("registry.test/one:0123456789abcdef")) == ["train"]
    assert engine.up(using("registry.test/two:0123456789abcdef")) == ["train"]


def test_a_stack_and_project_of_another_name_run_nothing(run: Engine, root: Path) -> None:
    renamed = declared(root, TWENTY, ground(staging="gs://team-prod"), prefix="other")
    before = {name: run.folder(name) for name in ("a", "b", "c")}
    assert run.up(renamed, stack="prod") == []
    assert {name: run.folder(name) for name in before} == before
    assert run.inputs("a")["owner"].endswith("/prod/a")


def test_in_the_cloud_another_bucket_is_another_run() -> None:
    def made(staging: str) -> Callable[[], Any]:
        on = ground(staging=staging)
        on.full_location_name = "//aiplatform.googleapis.com/projects/p/locations/r"
        return lambda: CustomJob("train", custom_job(), foundation=on)  # type: ignore[arg-type]

    engine = Engine()
    assert engine.up(made("gs://acme/team/dev")) == ["train"]
    assert engine.up(made("gs://acme/team/prod")) == []
    assert engine.up(made("gs://other/team/prod")) == ["train"]


def test_aliases_of_a_program_do_the_same() -> None:
    def made(name: str, *former: str, **given: Any) -> Callable[[], Any]:
        def program() -> None:
            opts = pulumi.ResourceOptions(aliases=[pulumi.Alias(name=each) for each in former])
            first = CustomJob(name, custom_job(), opts, foundation=(on := ground()), **given)  # type: ignore[arg-type]
            spec = edited(custom_job(), *ARGS, to=[first.model_dir.apply(lambda folder: f"--from={folder}")])
            CustomJob("second", spec, foundation=on)  # type: ignore[arg-type]

        return program

    engine = Engine()
    assert engine.up(made("first")) == ["first", "second"]
    folder = engine.folder("first")
    assert engine.up(made("earliest", "first")) == []
    assert engine.up(made("earliest")) == []
    assert engine.folder("earliest") == folder
    assert engine.up(made("third", "second-last", "earliest")) == []
    assert engine.up(made("third", lifecycle={"rerun": "1"})) == ["second", "third"]
    assert engine.folder("third").startswith("gs://staging/third/")


def test_the_page_s_alias_goes_on_with_a_run() -> None:
    text, _ = taken("docs/moving.md", "python", "import pulumi")

    def program(*last: str) -> Callable[[], Any]:
        given = {"on": ground(), "args": custom_job()}
        return lambda: exec("\n".join([text.replace("args, pulumi", "args, foundation=on, opts=pulumi"), *last]), given)

    engine = Engine()
    assert engine.up(program('CustomJob("train", args, foundation=on)')) == ["train"]
    assert engine.up(program("train_large(args)")) == []


def test_a_transform_gives_a_run_a_folder_of_its_own() -> None:
    def made(machine: str | None, folder: str = "") -> Callable[[], Any]:
        def edit(spec: dict[str, Any]) -> dict[str, Any]:
            job_spec = edited(spec["jobSpec"], "workerPoolSpecs", 0, "machineSpec", to={"machineType": machine})
            if folder:
                job_spec["baseOutputDirectory"] = {"outputUriPrefix": folder}
            return {**spec, "jobSpec": job_spec}

        def transform(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
            if machine is None:
                return None
            # In an update, an Output: all jobs of a program are checked before the first of them is registered.
            spec = pulumi.Output.from_input(args.props["spec"]).apply(edit)
            return pulumi.ResourceTransformationResult({**args.props, "spec": spec}, args.opts)

        def program() -> None:
            opts = pulumi.ResourceOptions(transformations=[transform])
            first = CustomJob("first", custom_job(), opts, foundation=(on := ground()))  # type: ignore[arg-type]
            spec = edited(custom_job(), *ARGS, to=[first.model_dir])
            CustomJob("second", spec, foundation=on)  # type: ignore[arg-type]

        return program

    engine = Engine()
    folders = set()
    for machine in (None, "n1-standard-8", "n1-standard-16"):
        assert engine.up(made(machine)) == ["first", "second"]
        assert (engine.up(made(machine)), engine.updated) == ([], [])
        folders.add(engine.folder("first"))
        assert engine.inputs("second")["spec"]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == [
            f"{engine.folder('first')}/model/"
        ]
    assert len(folders) == 3
    assert engine.up(made("n1-standard-16", "gs://mine/out")) == ["first", "second"]
    assert engine.folder("first") == "gs://mine/out"


def test_an_edited_folder_is_another_run() -> None:
    def made(folder: str) -> Callable[[], Any]:
        spec = edited(custom_job(), "jobSpec", "baseOutputDirectory", to={"outputUriPrefix": folder})
        return lambda: CustomJob("train", spec, foundation=ground())  # type: ignore[arg-type]

    engine = Engine()
    assert engine.up(made("gs://mine/train/0123abcd")) == ["train"]
    assert engine.up(made("gs://mine/train/4567abcd")) == ["train"]


def test_other_secrets_are_other_runs() -> None:
    def made(name: str, value: str) -> Callable[[], Any]:
        spec = edited(custom_job(), *ARGS, to=[f"--token=${{secrets.{name}}}"])
        return lambda: CustomJob("train", spec, foundation=ground(), secrets={name: value})  # type: ignore[arg-type]

    engine = Engine()
    assert engine.up(made("token", "one")) == ["train"]
    assert engine.up(made("key", "one")) == []
    assert engine.up(made("key", "two")) == ["train"]


def test_former_names_that_are_declared_or_claimed_twice_are_refused(tmp_path: Path) -> None:
    text = "customJobs:\n" + job("a", image="python:3.11") + job("b", image="python:3.11", formerly="a")
    text += job("c", image="python:3.11", formerly="[z]") + job("d", image="python:3.11", formerly="z")
    assert problems(tmp_path, INCLUDING, jobs=text) == [
        'jobs.yaml:8: customJobs.b.formerly: "a" is declared, at jobs.yaml:2; formerly is for a name that is gone',
        'jobs.yaml:20: customJobs.d.formerly: "z" is what c was formerly; keep it in one of the two',
    ]


def test_records_of_runs_go_with_the_name(tmp_path: Path) -> None:
    text = "customJobs:\n" + job("b", image="python:3.11", formerly="a")
    settings = load(tmp_path, INCLUDING, jobs=text)
    kept = _with_former({"a": "line"}, settings.plan.trainings)
    assert kept == {"a": "line", "b": "line"}


def test_the_ledger_names_the_key_of_a_renamed_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def props(text: str) -> dict[str, Any]:
        trainings = load(tmp_path, INCLUDING, jobs="customJobs:\n" + text).plan.trainings
        return {
            "stack": "organization/team/dev",
            "parent": "//local/projects/p/locations/r",
            "jobs": {each.name: each.kind.collection for each in trainings},
            "kept": [],
            "runs": training_digests(trainings),
            "formerly": {each.name: [*each.formerly] for each in trainings},
        }

    olds = LedgerProvider().check({}, props(job("a", image="python:3.11"))).inputs
    assert "formerly" not in olds
    LedgerProvider().check(olds, props(job("b", image="python:3.11", labels="{x: y}")))
    assert capsys.readouterr().out == 'b: runs what a has run, which is gone; add "formerly: a" to go on with its run\n'
    LedgerProvider().check(olds, props(job("b", image="python:3.11", formerly="a")))
    LedgerProvider().check(olds, props(job("b", '"--edited"', image="python:3.11")))
    assert capsys.readouterr().out == ""


def test_a_renamed_job_of_a_program_gets_the_alias(
    recorded: holders.State, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(name: str, olds: Any = None) -> None:
        monkeypatch.setattr(engine, "requested_urn", lambda: URN.removesuffix("train") + name)
        BY_TYPE["CustomJob"].check(olds or {}, {**inputs, "owner": f"organization/team/dev/{name}"})

    run = Engine()
    run.up(lambda: CustomJob("train", custom_job(), foundation=ground()) and None)  # type: ignore[arg-type]
    id_, inputs = run.state["train"]
    start_new_process()
    recorded.ids[id_], recorded.inputs[URN] = [URN], ("CustomJob", inputs)
    check("other", inputs)
    capsys.readouterr()
    check("large")
    key = 'aliases=[pulumi.Alias(name="train")]'
    assert capsys.readouterr().out == f"large: runs what train has run; if that is gone, go on with its run by {key}\n"
    check("train", inputs)
    check("larger")
    assert capsys.readouterr().out == "", "train is still there"
    start_new_process()
    check("other", inputs)
    for number in range(21):
        check(f"large-{number}")
    assert capsys.readouterr().out.count("runs what train has run") == 20, "each looks at all jobs of the state"


def test_waiting_jobs_of_a_program_are_told_one_by_one() -> None:
    waiting, told = moves.Waiting(), []
    for number in range(8):
        waiting.add(f"job{number}", {moves.NEXT_RUN: {"labels": {}}})
        told.append(waiting.take_line(is_last=False))
    assert told[:2] == [f"labels: from their next run on, of job{number}" for number in range(2)]
    assert told[5:] == ["labels: from their next run on, of further jobs", "", ""]


def test_the_ledger_names_no_key_for_another_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    def props(prefix: str) -> dict[str, Any]:
        jobs, runs = {f"{prefix}train": "customJobs"}, {f"{prefix}train": "0123abcd"}
        where = {"stack": "organization/team/dev", "parent": "//local/projects/p/locations/r"}
        return {**where, "jobs": jobs, "kept": [], "runs": runs, "settings": {"prefix": prefix}}

    LedgerProvider().check(props("west-"), props("east-"))
    LedgerProvider().check(props(""), props("east-"))
    assert capsys.readouterr().out == ""


def test_the_page_shows_the_line_of_a_preview() -> None:
    waiting = moves.Waiting()
    for name in ("bert", "digits", "line", "search", "train", *(f"train{number}" for number in range(15))):
        waiting.add(name, {moves.NEXT_RUN: {"labels": {"team": "b"}}})
    assert [f"{waiting.take_line()}\n", waiting.take_line()] == [*taken("docs/moving.md", "output", "labels: "), ""]


@pytest.mark.parametrize(
    ("arguments", "is_left_out"),
    [
        ("up", False),
        (f"up --target {URN}", False),
        ("up --target **::other", True),
        ("up --target=**::other,**::train", False),
        ("up -t **::other --yes", True),
        ("up --target **::other --target-dependents", False),
        ("up --exclude **CustomJob::*", True),
        ("up --exclude **::other", False),
    ],
)
def test_targets_are_read_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch, arguments: str, is_left_out: bool
) -> None:
    monkeypatch.setattr(engine, "own_arguments", lambda: arguments.split())
    assert engine.leaves_out(URN) is is_left_out
    custom = PROVIDERS[CUSTOM_JOB]
    news = {"owner": "team/dev/release", "parent": "//local/projects/p/locations/r", "spec": custom_job(), "rerun": "2"}
    monkeypatch.setattr(engine, "requested_urn", lambda: URN)
    (message,) = taken("docs/moving.md", "output", "release: would run again")
    refused = pytest.raises(SubmitFailed, match=f"^{re.escape(message.strip())}$")
    with refused if is_left_out else nullcontext():
        custom.diff("projects/p/locations/r/customJobs/1", {**news, "rerun": "1"}, news)
    custom.diff("projects/p/locations/r/customJobs/1", news, news)
