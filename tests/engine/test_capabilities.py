"""The declarations of docs/capabilities.md that run on this machine do: one stack of them, through the real engine."""

import shutil

from tests.corpus.specs import converted
from tests.engine.project import CHECKOUT, PARENT, Project

FOLDER = CHECKOUT / "tests" / "corpus" / "capabilities"
PRINTS = "# prints "


def test_every_declaration_runs_and_prints_what_it_says(project: Project) -> None:
    shutil.rmtree(project.root / "trainer")
    for name in ("trainer", "config"):
        shutil.copytree(FOLDER / name, project.root / name)
    files = sorted(FOLDER.glob("*.yaml"))
    for file in files:
        shutil.copy(file, project.root / "training")
    text, refused = converted(FOLDER / "config" / "legacy.yaml")
    assert refused == []
    (project.root / "training" / "legacy.yaml").write_text(text + "    lifecycle: {wait: true}\n")
    data = project.data / "gcs" / "capabilities" / "data"
    data.mkdir(parents=True)
    (data / "training-1.jsonl").write_text("{}\n{}\n")
    project.declarations = {}
    project.stack["vertex-training:include"] = ["training"]
    project.declare()

    project.up()

    outputs = project.outputs()
    assert {job["state"].partition("_STATE_")[2] for job in outputs["jobs"].values()} == {"SUCCEEDED"}
    assert outputs["jobs"].keys() == {file.stem for file in files} | {"legacy"}
    commands = {name: ("logs", job["logs"].rpartition(" ")[2]) for name, job in outputs["jobs"].items()}
    logs = {name: project.run_emulator(*command).stdout for name, command in commands.items()}
    said = [line.removeprefix(PRINTS) for file in files for line in file.read_text().splitlines() if PRINTS in line]
    said += ["legacy: --model-dir=gs://capabilities/model --epochs=10"]
    for line in said:
        name, _, printed = line.partition(": ")
        assert printed in logs[name]

    results = outputs["results"]
    best = max(results["tuning"]["trials"], key=lambda trial: trial["metrics"]["score"])
    assert (len(results["tuning"]["trials"]), results["tuning"]["bestTrial"]) == (3, best)
    (model,) = project.request("GET", f"{PARENT}/models")["models"]
    assert results["pipeline"]["model"] == model["name"]
    bucket, _, folder = results["container"]["modelDir"].removeprefix("gs://").partition("/")
    assert (project.data / "gcs" / bucket / folder / "model.json").is_file()
    project.assert_no_changes()
