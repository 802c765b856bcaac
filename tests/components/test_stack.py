"""Jobs as resources: which are submitted after which, and what of them is known beforehand."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from vertex_training import Completion, CustomJob, HyperparameterTuningJob
from vertex_training.data.lock import LockedData
from vertex_training.settings.settings import Settings
from vertex_training.stack import MAX_FULL, Images, Jobs, Packages, Sources, _brief

from tests.components.fakes import Ground
from tests.components.jobs.test_provider import ARGS
from tests.components.jobs.test_references import CUSTOM, after, jobs
from tests.components.projects import INCLUDING, load
from tests.components.targets.gcp.graph import Graph, graph
from tests.vertex_api.jobs import custom_job, edited, tuning_job

# The threads of Pulumi's mocks leave an event loop each.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
POOL = "workerPoolSpecs"


def made(root: Path, text: str) -> Graph:
    """What the program registers of declared jobs, on a plain foundation."""
    settings: Settings = load(root, INCLUDING, jobs=text)
    ground = Ground()
    return graph(lambda: Jobs(settings, ground, Sources(Images(settings, ground), Packages(settings, ground))))


def test_locked_data_is_an_input_of_jobs_that_refer_to_it(tmp_path: Path) -> None:
    text = "data: {train: {uri: gs://acme/train/, verify: warn}, other: {uri: gs://acme/other/}}\n" + jobs(
        '"${data.train}"', last='"${jobs.train.modelDir}", "${data.other}"', alone=""
    )
    settings: Settings = load(tmp_path, INCLUDING, jobs=text)

    def build(digest: str) -> Graph:
        summary = {"uri": "gs://acme/train/", "objects": 1, "bytes": 1, "digest": digest}
        data = {
            "train": LockedData("gs://acme/train/", summary, "warn"),
            "other": LockedData("gs://acme/other/", None, "error"),
        }
        ground = Ground()
        sources = Sources(Images(settings, ground), Packages(settings, ground))
        return graph(lambda: Jobs(settings, ground, sources, data=data))

    one, other = build("00"), build("11")
    train = one.inputs["CustomJob/train"]
    assert train["data"]["train"]["digest"] == "00" and train["verify"] == {"train": "warn"}
    assert args(one, "CustomJob/train") == ["gs://acme/train/"]
    assert "data" not in one.inputs["CustomJob/last"] and "data" not in one.inputs["CustomJob/alone"]
    folders = [
        [each.inputs[f"CustomJob/{name}"]["spec"]["jobSpec"]["baseOutputDirectory"] for each in (one, other)]
        for name in ("train", "last", "alone")
    ]
    # A run on other data, and a run after it, write to folders of their own.
    assert [before == after for before, after in folders] == [False, False, True]


def args(found: Graph, job: str) -> list[str]:
    arguments: list[str] = found.inputs[job]["spec"]["jobSpec"][POOL][0]["containerSpec"]["args"]
    return arguments


def test_jobs_are_submitted_after_those_they_use(tmp_path: Path) -> None:
    text = jobs('"${jobs.tune.bestTrial.id}"', last='"${jobs.train.name}", "${jobs.tune.name}"', alone="")
    found = made(tmp_path, text)
    completions = {name: set(inputs["jobs"]) for name, inputs in found.of("Completion").items()}
    assert completions == {"Completion/wait-for-upstream-1": {"tune"}, "Completion/wait-for-upstream-2": {"train"}}
    assert found.needs("CustomJob/alone") == found.needs("HyperparameterTuningJob/tune") == set()
    assert found.needs("CustomJob/train") == {"Completion/wait-for-upstream-1", "HyperparameterTuningJob/tune"}
    assert found.needs("CustomJob/last") == {
        "Completion/wait-for-upstream-1",
        "Completion/wait-for-upstream-2",
        "CustomJob/train",
        "HyperparameterTuningJob/tune",
    }
    assert found.inputs["CustomJob/last"]["jobs"] == {"train": "train-id", "tune": "tune-id"}


def test_last_jobs_are_awaited_in_one_completion(tmp_path: Path) -> None:
    waited = f"  waited: {{{CUSTOM.replace('ARGS', '')}, lifecycle: {{wait: true}}}}\n"
    found = made(tmp_path, after(a="", b="a").replace("after: []", "wait: true") + waited)
    completions = {name: set(inputs["jobs"]) for name, inputs in found.of("Completion").items()}
    assert completions == {"Completion/wait-for-upstream-1": {"a"}, "Completion/wait-for-jobs": {"waited"}}
    assert found.needs("CustomJob/b") == {"Completion/wait-for-upstream-1", "CustomJob/a"}
    assert found.needs("Completion/wait-for-jobs") == {"CustomJob/waited"}


def test_independent_jobs_need_no_stage(tmp_path: Path) -> None:
    found = made(tmp_path, jobs("", alone=""))
    assert not found.of("Completion")
    assert all("jobs" not in inputs for inputs in found.inputs.values())


def test_a_changed_earlier_job_changes_the_model_folder(tmp_path: Path) -> None:
    text = jobs('"${jobs.tune.modelDir}"', middle='"${jobs.train.modelDir}"', last='"${jobs.middle.name}"')
    before, other = made(tmp_path, text), made(tmp_path, text.replace("maxTrialCount: 2", "maxTrialCount: 3"))
    folders = [
        {name: found.inputs[f"CustomJob/{name}"]["spec"]["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"]
         for name in ("train", "middle", "last")} for found in (before, other)
    ]  # fmt: skip
    assert args(before, "CustomJob/middle") == [f"{folders[0]['train']}/model/"]
    assert args(before, "CustomJob/train") == ["${jobs.tune.modelDir}"]
    assert all(folders[0][name] != folders[1][name] for name in folders[0])
    assert made(tmp_path, text).inputs == before.inputs


def test_a_declared_folder_changes_with_earlier_jobs(tmp_path: Path) -> None:
    text = jobs('"${jobs.tune.bestTrial.id}"', last='"${jobs.train.modelDir}"')
    text = text.replace("  train: {jobSpec: {", "  train: {jobSpec: {baseOutputDirectory: {outputUriPrefix: gs://b}, ")
    before, other = made(tmp_path, text), made(tmp_path, text.replace("maxTrialCount: 2", "maxTrialCount: 3"))
    folders = [each.inputs["CustomJob/last"]["spec"]["jobSpec"]["baseOutputDirectory"] for each in (before, other)]
    assert args(before, "CustomJob/last") == args(other, "CustomJob/last") == ["gs://b/model/"]
    assert folders[0] != folders[1]


def test_a_python_program_can_chain_jobs() -> None:
    known: list[Any] = []

    def program() -> None:
        ground = Ground()
        tune = HyperparameterTuningJob("tune", tuning_job(), foundation=ground)
        tuned = Completion("tuned", {"tune": tune}, foundation=ground)
        spec = edited(custom_job(), *ARGS, to=["--rate=${jobs.tune.bestTrial.parameters.rate}"])
        after = pulumi.ResourceOptions(depends_on=[tuned])
        train = CustomJob("train", spec, foundation=ground, jobs={"tune": tune}, opts=after)
        pulumi.Output.all(train.model_dir, tune.model_dir).apply(known.extend)

    found = graph(program)
    assert found.inputs["CustomJob/train"]["jobs"] == {"tune": "tune-id"}
    assert args(found, "CustomJob/train") == ["--rate=${jobs.tune.bestTrial.parameters.rate}"]
    assert "Completion/tuned" in found.needs("CustomJob/train")
    folder = found.inputs["CustomJob/train"]["spec"]["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"]
    assert known == [f"{folder}/model/", None]


def test_an_adopted_job_keeps_undeclared_fields(tmp_path: Path) -> None:
    def program(adopt: int) -> Graph:
        adopted = f"  a: {{{CUSTOM.replace('ARGS', '')}, lifecycle: {{adopt: {adopt}, deadline: 60s}}}}\n"
        user = CUSTOM.replace("ARGS", '"${jobs.a.modelDir}"')
        return made(tmp_path, f"customJobs:\n{adopted}  b: {{{user}}}\n")

    found, other = program(77), program(78)
    job = found.inputs["CustomJob/a"]
    assert job["adopt"].endswith("/customJobs/77")
    assert job["spec"].keys() == {"jobSpec"} and job["spec"]["jobSpec"].keys() == {POOL}
    assert job["lifecycle"] == {"deadline": "60s"}
    assert args(found, "CustomJob/b") == ["${jobs.a.modelDir}"]
    assert found.inputs["Completion/wait-for-upstream-1"]["deadlines"] == {"a": "60s"}
    folders = [graph.inputs["CustomJob/b"]["spec"]["jobSpec"]["baseOutputDirectory"] for graph in (found, other)]
    assert folders[0] != folders[1]


def test_brief_results_are_one_line_each() -> None:
    best = {"id": "1", "parameters": {"lr": 0.02, "kind": "a b"}, "metrics": {"accuracy": 0.97}}
    search = {"state": "JOB_STATE_SUCCEEDED", "took": "2026-01-01T00:05:00Z 299 s", "trials": [best], "bestTrial": best}
    line = "bestTrial.id=1 bestTrial.parameters.lr=0.02 bestTrial.parameters.kind='a b' bestTrial.metrics.accuracy=0.97"
    results = {"search": search, "none": {"bestTrial": None, "paretoTrials": [{"id": "2"}]}}
    assert _brief(results) == {
        "search": f"state=JOB_STATE_SUCCEEDED {line}",
        "none": "bestTrial=null paretoTrials.0.id=2",
    }


@pytest.mark.parametrize(
    ("count", "form", "is_brief"),
    [(MAX_FULL, "", False), (MAX_FULL + 1, "", True), (MAX_FULL + 1, "full", False), (1, "brief", True)],
)
def test_the_form_of_outputs_is_by_jobs_or_key(tmp_path: Path, count: int, form: str, is_brief: bool) -> None:
    stack = INCLUDING + (f"  vertex-training:outputs: {form}\n" if form else "")
    text = "".join(f"  job-{number}: {{{CUSTOM.replace('ARGS', '')}}}\n" for number in range(count))
    settings: Settings = load(tmp_path, stack, jobs=f"customJobs:\n{text}")
    found: dict[str, Any] = {}

    def program() -> None:
        ground = Ground()
        made = Jobs(settings, ground, Sources(Images(settings, ground), Packages(settings, ground)))
        made.outputs["jobs"]["job-0"].apply(lambda run: found.update(run=run))

    run = {"state": "JOB_STATE_RUNNING", "name": "projects/p/locations/l/customJobs/1"}
    graph(program, outputs={"CustomJob": {"run": run}})
    assert found["run"] == ("RUNNING projects/p/locations/l/customJobs/1" if is_brief else run)
