"""References between declared jobs, their order, and what is wrong with either."""

import json
from pathlib import Path
from typing import Any

import pytest
from vertex_training.jobs.references import cycles, levels
from vertex_training.plan.training import Training
from vertex_training.settings.settings import Settings

from tests.components.projects import INCLUDING, load, problems


@pytest.mark.parametrize(
    ("above", "found"),
    [
        ({}, {}),
        ({"a": [], "b": []}, {"a": 0, "b": 0}),
        ({"c": ["b"], "b": ["a"], "a": []}, {"a": 0, "b": 1, "c": 2}),
        ({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, {"a": 0, "b": 1, "c": 1, "d": 2}),
        ({"d": ["a", "c"], "c": ["b"], "b": ["a"], "a": []}, {"a": 0, "b": 1, "c": 2, "d": 3}),
    ],
    ids=["none", "apart", "a chain", "a diamond", "a short cut"],
)
def test_a_level_is_the_longest_path_length(above: dict[str, Any], found: dict[str, int]) -> None:
    assert levels(above) == found


def test_a_chain_of_1000_has_1000_levels() -> None:
    above: dict[str, list[str]] = {str(at): [str(at - 1)] if at else [] for at in reversed(range(1000))}
    assert levels(above)["999"] == 999


@pytest.mark.parametrize(
    ("above", "found"),
    [
        ({"a": [], "b": ["a"]}, []),
        ({"a": ["a"]}, [["a", "a"]]),
        ({"a": ["b"], "b": ["a"]}, [["a", "b", "a"]]),
        ({"b": ["c"], "a": ["b"], "c": ["a"]}, [["b", "c", "a", "b"]]),
        ({"x": ["a"], "a": ["b"], "b": ["a"]}, [["a", "b", "a"]]),
        ({"a": ["b"], "b": ["a"], "c": ["d", "c"], "d": ["c"]}, [["a", "b", "a"], ["c", "c"], ["c", "d", "c"]]),
    ],
    ids=["none", "itself", "two", "three, from the first declared", "with one that is not in it", "several"],
)
def test_each_cycle_is_named_once(above: dict[str, Any], found: Any) -> None:
    assert sorted(cycles(above)) == found


TUNE = """\
hyperparameterTuningJobs:
  tune:
    studySpec:
      metrics: [{metricId: score, goal: MAXIMIZE}, {metricId: size, goal: MINIMIZE}]
      parameters:
        - parameterId: optimizer
          categoricalValueSpec: {values: [sgd, adam]}
          conditionalParameterSpecs:
            - parentCategoricalValues: {values: [sgd]}
              parameterSpec: {parameterId: momentum, doubleValueSpec: {minValue: 0.1, maxValue: 0.9}}
        - {parameterId: model.lr, doubleValueSpec: {minValue: 0.1, maxValue: 0.9}}
    maxTrialCount: 2
    parallelTrialCount: 1
    trialJobSpec: {workerPoolSpecs: [{machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: x}}]}
"""
POOL = "{machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: x, args: [ARGS]}}"
CUSTOM = f"jobSpec: {{workerPoolSpecs: [{POOL}]}}"
REGISTER = f"""\
trainingPipelines:
  register:
    trainingTaskInputs: {{workerPoolSpecs: [{POOL.replace("ARGS", "")}]}}
    modelToUpload: {{displayName: m, containerSpec: {{imageUri: serve}}}}
"""
ARG = "jobs.yaml:3: customJobs.train.jobSpec.workerPoolSpecs[0].containerSpec.args[0]"


def jobs(train: str = "", **others: str) -> str:
    """Custom jobs, each on a line with its arguments, and the other two."""
    names = {"train": train, **others}
    lines = [f"  {name}: {{{CUSTOM.replace('ARGS', args)}}}\n" for name, args in names.items()]
    return "customJobs:\n" + "  # each on a line of its own\n" + "".join(lines) + TUNE + REGISTER


def after(**names: str) -> str:
    lines = [f"  {job}: {{{CUSTOM.replace('ARGS', '')}, lifecycle: {{after: [{of}]}}}}\n" for job, of in names.items()]
    return "customJobs:\n" + "".join(lines)


def declared(root: Path, text: str) -> dict[str, Training]:
    return {job.name: job for job in load(root, INCLUDING, jobs=text).jobs}


def args(job: Training) -> list[str]:
    found: list[str] = job.job.fields["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]
    return found


@pytest.mark.parametrize(
    "result",
    [
        "tune.name",
        "tune.modelDir",
        "tune.bestTrial.id",
        "tune.bestTrial.parameters.optimizer",
        "tune.bestTrial.parameters.momentum",
        "tune.bestTrial.parameters.model.lr",
        "tune.bestTrial.metrics.size",
        "register.name",
        "register.modelDir",
        "register.model",
        "register.backingJob",
        "data.modelDir",
        "data.name",
    ],
)
def test_a_reference_stays_and_names_its_job(tmp_path: Path, result: str) -> None:
    text = f"--x=${{jobs.{result}}}"
    train = declared(tmp_path, jobs(f'"{text}"', data=""))["train"]
    assert args(train) == [text]
    assert train.referenced == train.upstream == {result.partition(".")[0]}


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("tun.modelDir", 'names no declared job: "tun"; did you mean tune?'),
        ("tune.bestTrial.parameters.lr", "is not a result of tune; did you mean bestTrial.parameters.model.lr?"),
        (
            "tune.metrics.score",
            "cannot be used by another job: the stack's output `results`, or the results of a Completion, have the "
            "metrics of tune; let that job read a file of tune",
        ),
        ("tune.bestTrial.metrics.scor", "is not a result of tune; did you mean bestTrial.metrics.score?"),
        ("tune.model_dir", "is not a result of tune; did you mean modelDir?"),
        ("data.bestTrial.id", "is not a result of data; known: modelDir, name"),
        ("data", "is not a result of data; known: modelDir, name"),
        ("data.model", "is not a result of data; did you mean modelDir?"),
    ],
)
def test_a_dangling_reference_suggests_the_closest_name(tmp_path: Path, result: str, problem: str) -> None:
    found = problems(tmp_path, INCLUDING, jobs=jobs(f'"${{jobs.{result}}}"', data=""))
    assert found == [f"{ARG}: ${{jobs.{result}}} {problem}"]


def test_dotted_references_match_the_longest_declared_name(tmp_path: Path) -> None:
    text = jobs('"${jobs.a.b.name} ${jobs.a.name}"', a="", **{"a.b": ""})
    assert declared(tmp_path, text)["train"].referenced == {"a", "a.b"}


def test_reference_problems_are_reported_beside_others(tmp_path: Path) -> None:
    text = jobs('"${jobs.tune.bestTrial.idd}", "${jobs.no.name}", "${vars.no}", 5')
    found = problems(tmp_path, INCLUDING, jobs=text.replace("maxTrialCount: 2", "maxTrialCount: two"))
    assert [line.partition(": ")[2].partition(": ")[2] for line in found] == [
        "${vars.no} is not declared",
        '5 is not a string; write "5" in quotes',
        # What tune offers is not known, as it has a problem itself.
        '${jobs.no.name} names no declared job: "no"; known: register, train, tune',
        '"two" is not a whole number',
    ]


@pytest.mark.parametrize("spelled", ["parallelTrialCount: 1", "maxTrialCount: 2"])
def test_a_number_field_rejects_a_result(tmp_path: Path, spelled: str) -> None:
    field = spelled.partition(":")[0]
    text = jobs("", data="").replace(spelled, f'{field}: "${{jobs.data.name}}"')
    (found,) = problems(tmp_path, INCLUDING, jobs=text)
    message = "${jobs.data.name} is known only after that job, so it can be used in texts only"
    assert found.endswith(f": hyperparameterTuningJobs.tune.{field}: {message}")


def test_guardrails_reject_a_referenced_machine_type(tmp_path: Path) -> None:
    text = jobs("", data="").replace("machineType: n1-standard-4", 'machineType: "${jobs.data.name}"', 1)
    stack = INCLUDING + "  vertex-training:guardrails: {machineTypes: [n1-*]}\n"
    (found,) = problems(tmp_path, stack, jobs=text)
    assert '"${jobs.data.name}" stands for a value that is not known yet, so it cannot be checked' in found
    assert declared(tmp_path, text)["train"].referenced == {"data"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (jobs('"${jobs.train.name}"'), [f"{ARG}: comes after itself: train → train"]),
        (
            jobs('"${jobs.b.name}"', b='"${jobs.c.name}"', c='"${jobs.train.modelDir}"'),
            [f"{ARG}: comes after itself: train → b → c → train"],
        ),
        (after(a="a"), ["jobs.yaml:2: customJobs.a.lifecycle.after[0]: comes after itself: a → a"]),
        (
            after(a="b", b="c", c="b", d="d"),
            [
                "jobs.yaml:3: customJobs.b.lifecycle.after[0]: comes after itself: b → c → b",
                "jobs.yaml:5: customJobs.d.lifecycle.after[0]: comes after itself: d → d",
            ],
        ),
        (
            after(tune="tun", bb="tune, cc"),
            [
                'jobs.yaml:2: customJobs.tune.lifecycle.after[0]: "tun" is not a declared job; did you mean tune?',
                'jobs.yaml:3: customJobs.bb.lifecycle.after[1]: "cc" is not a declared job; known: bb, tune',
            ],
        ),
    ],
    ids=["itself", "a cycle", "after itself", "two cycles", "names"],
)
def test_what_cannot_be_put_in_order_is_named(tmp_path: Path, text: str, found: list[str]) -> None:
    assert problems(tmp_path, INCLUDING, jobs=text) == found


def test_a_reference_in_a_lifecycle_is_refused_once(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, INCLUDING, jobs=after(a="", b='"${jobs.a.name}"'))
    message = "${jobs.a.name} is not a reference that is allowed here; write ${vars.NAME}"
    assert found == f"jobs.yaml:3: customJobs.b.lifecycle.after[0]: {message}"


def test_a_malformed_lifecycle_is_the_only_problem(tmp_path: Path) -> None:
    text = after(a="").replace("after: []", "after: tune")
    assert problems(tmp_path, INCLUDING, jobs=text) == [
        "jobs.yaml:2: customJobs.a.lifecycle.after: must be a list",
    ]


def test_after_alone_adds_no_references(tmp_path: Path) -> None:
    found = declared(tmp_path, "vars: {first: a}\n" + after(a="", b='"${vars.first}"'))
    assert (found["b"].upstream, found["b"].referenced) == ({"a"}, frozenset())


def test_a_declared_folder_brings_its_references_along(tmp_path: Path) -> None:
    text = jobs('"${jobs.data.modelDir}"', data="", more='"in ${jobs.train.modelDir}"')
    folder = 'jobSpec: {baseOutputDirectory: {outputUriPrefix: "gs://b/${jobs.tune.bestTrial.id}/$${x}/"}, worker'
    text = text.replace("  data: {jobSpec: {worker", f"  data: {{{folder}")
    found = declared(tmp_path, text)
    assert args(found["train"]) == ["gs://b/${jobs.tune.bestTrial.id}/$${x}/model/"]
    assert found["train"].referenced == {"data", "tune"}
    assert args(found["more"]) == ["in ${jobs.train.modelDir}"]
    assert found["more"].referenced == {"train"}


def test_the_project_s_own_example_is_right() -> None:
    root = Path(__file__).parents[3]
    files = [f"training/{name}.yaml" for name in ("images", "digits", "best")]
    config = {"vertex-training:target": "local", "vertex-training:include": json.dumps(files)}
    settings = Settings.load_from_config("vertex-training", "local", root, config)
    found = {job.name: set(job.referenced) for job in settings.jobs if job.referenced}
    assert found == {"digits-model": {"digits-search"}}
