"""Record the previews that tests/components/review reads: `python -m tests.engine.record_previews` (a minute, Docker).

Names as arguments record some of them: `dev`, `readme`, `pull-requests`.

Each is what the real engine prints for a stack of the target gcp, with a registry of this machine, the stand-in for the
gcp provider, and the emulator in place of Vertex AI. Parts that no review reads are shortened.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.engine.cloud import GCP, CloudProject, create_cloud_project
from tests.engine.project import CHECKOUT, Project
from tests.registry import registry
from tests.vertex_emulator.running import IMAGE, RunningEmulator

RECORDED = Path(__file__).parents[1] / "components" / "review" / "recorded"
_UNREAD = ("propertyDependencies", "outputs", "created", "modified", "replaceOnChanges", "dependencies")
_HOMES = {f"{Path(__file__).parents[2]}/": "/home/ci/training/", "/root/": "/home/ci/"}


def preview_as_json(project: Project, *options: str) -> str:
    """Return what `pulumi preview --json` writes to standard output, also when it fails."""
    command = ["pulumi", "preview", "--json", "--stack", project.name, "--non-interactive", *options]
    done = subprocess.run(
        command, cwd=project.root, env=project.environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return done.stdout


def _record(project: CloudProject, case: str, *options: str) -> None:
    fields = json.loads(preview_as_json(project, *options))
    text = json.dumps(_shorten(fields), indent=0, sort_keys=True)
    for home, replacement in _HOMES.items():
        text = text.replace(home, replacement)
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{case}.json").write_text(text + "\n")
    print(f"{case}: {len(text):,} bytes")  # noqa: T201


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _shorten(each) for key, each in value.items() if key not in _UNREAD}
        if runs := value.get("outputs", {}).get("runs") if value.get("type") == "pulumi:pulumi:Stack" else None:
            kept["outputs"] = {"runs": runs}
        if "stackTrace" in kept:
            kept["stackTrace"] = kept["stackTrace"][-1:]
        return kept
    return [_shorten(each) for each in value] if isinstance(value, list) else value


def record_all(folder: Path, vertex: RunningEmulator, registry_url: str, docker_config: Path) -> None:
    """Record each case once."""
    project = CloudProject(folder, vertex)
    # Enough for the jobs as they are, and too little for the larger machine.
    project.environment |= {"DOCKER_CONFIG": str(docker_config), "GCP_STANDIN_QUOTAS": json.dumps({"cpus": 10})}
    (project.root / "training" / "images.yaml").write_text(
        yaml.safe_dump({"images": project.declarations.pop("images")})
    )
    project.stack["vertex-training:include"] = ["training"]
    project.stack["vertex-training:guardrails"] = {"maxHourlyCost": 0.9, "maxReplicas": 1, "maxTimeout": "604800s"}
    project.pulumi("config", "set", "--secret", "--path", "vertex-training:secrets.hfToken", "canary", "--stack", "dev")
    stack_file = project.root / "stacks" / "Pulumi.dev.yaml"
    project.stack["vertex-training:secrets"] = yaml.safe_load(stack_file.read_text())["config"][
        "vertex-training:secrets"
    ]
    project.container["env"] = [{"name": "HF_TOKEN", "value": "${secrets.hfToken}"}]
    evaluate = json.loads(json.dumps(project.job))
    evaluate["jobSpec"]["workerPoolSpecs"][0]["containerSpec"] = {
        "imageUri": IMAGE,
        "command": ["true"],
        "args": ["${jobs.train.modelDir}"],
    }
    project.declarations["customJobs"]["evaluate"] = evaluate
    project.declare()
    _record(project, "first")

    project.stack["vertex-training:registry"] = {"url": registry_url}
    project.declare()
    project.up()
    prod = {**GCP, **{key: project.stack[key] for key in ("vertex-training:include",)}}
    prod |= {
        "vertex-training:project": "acme-prod",
        "vertex-training:projectNumber": "210987654321",
        "vertex-training:include": ["training/jobs.yaml"],
        "vertex-training:images": {"trainer": {"stack": "dev"}},
        "vertex-training:secrets": {"hfToken": "of-prod"},
    }
    (project.root / "stacks" / "Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": prod}))
    project.create_stack("prod")
    project.pulumi("up", "--yes", "--skip-preview", "--stack", "prod")

    project.container["args"] = ["--epochs=3"]
    project.job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["machineType"] = "n1-standard-8"
    project.declare()
    _record(project, "machine-change", "--show-sames")
    project.stack["vertex-training:guardrails"] = {"machineTypes": ["n1-standard-4"], "maxHourlyCost": 0.5}
    project.declare()
    _record(project, "guardrail-refusal")

    project.stack["vertex-training:guardrails"] = {"maxHourlyCost": 0.9}
    project.container["args"] = ["--epochs=1"]
    project.job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["machineType"] = "n1-standard-4"
    project.stack["vertex-training:bucket"] = {"existing": "gs-of-the-team"}
    project.declare()
    _record(project, "bucket-removed", "--show-sames")

    del project.stack["vertex-training:bucket"]
    project.declare()
    project.edit_code()
    (project.root / "trainer" / "data.py").write_text("ROWS = 3\n")
    dockerfile = project.root / "trainer" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("COPY train.py /train.py", "COPY *.py /"))
    _record(project, "code-edit", "--show-sames")
    project.up()
    project.name = "prod"
    _record(project, "promotion", "--show-sames")

    program = project.root / "__main__.py"
    program.write_text(f"{program.read_text()}\nopen('{folder}/of/the/machine.txt')\n")
    _record(project, "failed")


def record_runs(project: CloudProject, **records: str) -> None:
    """Let the state of a stack say that its jobs have run."""
    exported = project.root / "state.json"
    project.pulumi("stack", "export", "--stack", project.name, "--file", str(exported))
    state = json.loads(exported.read_text())
    (stack,) = (each for each in state["deployment"]["resources"] if each["type"] == "pulumi:pulumi:Stack")
    stack["outputs"] = {**stack.get("outputs", {}), "runs": records}
    exported.write_text(json.dumps(state))
    project.pulumi("stack", "import", "--stack", project.name, "--file", str(exported))


def record_pull_requests(folder: Path, vertex: RunningEmulator) -> None:
    """Record four pull requests: a limit removed, a label added, a job renamed, and a GPU that runs again."""
    project = create_cloud_project(folder, vertex)
    gpu = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
    jobs = project.declarations["customJobs"]
    project.job["jobSpec"]["scheduling"] = {"timeout": "3600s"}
    del project.job["lifecycle"]
    jobs["finetune"] = json.loads(json.dumps(project.job))
    jobs["finetune"]["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] = gpu
    project.stack |= {
        "vertex-training:region": "us-central1",
        "vertex-training:guardrails": {"maxHourlyCost": 2, "maxTimeout": "86400s"},
    }
    project.declare()
    project.up()
    runs = {"train": "1260 s on 1 n1-standard-4", "finetune": "2700 s on 1 g2-standard-8 with 1 NVIDIA_L4"}
    record_runs(project, **{name: f"2026-11-21T09:00:00Z {took}" for name, took in runs.items()})
    stack, declarations = (json.dumps(each) for each in (project.stack, project.declarations))

    def start_again() -> None:
        project.stack, project.declarations = json.loads(stack), json.loads(declarations)

    del project.stack["vertex-training:guardrails"]["maxHourlyCost"]
    large = {"machineType": "a2-ultragpu-8g", "acceleratorType": "NVIDIA_A100_80GB", "acceleratorCount": 8}
    finetune = project.declarations["customJobs"]["finetune"]["jobSpec"]
    finetune["workerPoolSpecs"][0]["machineSpec"] = large
    finetune["scheduling"]["timeout"] = "86400s"
    project.declare()
    _record(project, "limit-removed", "--show-sames")
    start_again()

    project.stack["vertex-training:labels"] = {"team": "vision"}
    project.declare()
    _record(project, "label-added", "--show-sames")
    start_again()

    jobs = project.declarations["customJobs"]
    jobs["train-v2"] = jobs.pop("train")
    project.declare()
    _record(project, "rename", "--show-sames")
    start_again()

    container = project.declarations["customJobs"]["finetune"]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    container["args"] = ["--epochs=2"]
    project.declare()
    _record(project, "gpu-again", "--show-sames")


def record_readme(folder: Path, vertex: RunningEmulator, registry_url: str, docker_config: Path) -> None:
    """Record the edit whose review the README shows: another trainer and a larger machine for its own jobs."""
    project = CloudProject(folder, vertex)
    project.environment |= {"DOCKER_CONFIG": str(docker_config), "GCP_STANDIN_QUOTAS": json.dumps({"cpus": 42})}
    shutil.copytree(CHECKOUT / "examples" / "digits", project.root / "examples" / "digits")
    jobs = project.root / "training" / "jobs.yaml"
    sources = [(CHECKOUT / "training" / name).read_text() for name in ("images.yaml", "digits.yaml")]
    declared = "\n".join(sources)
    project.stack["vertex-training:registry"] = {"url": registry_url}
    project.stack["vertex-training:guardrails"] = {"maxHourlyCost": 2}
    project.declare()
    jobs.write_text(declared)
    project.up()
    with (project.root / "examples" / "digits" / "trainer.py").open("a") as trainer:
        trainer.write("# edited\n")
    machine = "machineType: n1-standard-4"
    jobs.write_text(declared[: declared.rindex(machine)] + declared[declared.rindex(machine) :].replace("-4", "-8", 1))
    _record(project, "readme", "--show-sames")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="previews-") as name, registry(Path(name) / "registry") as local:
        vertex = RunningEmulator(Path(name) / "vertex")
        recorders: dict[str, Callable[[Path], None]] = {
            "dev": lambda folder: record_all(folder, vertex, local.url, local.docker_config),
            "readme": lambda folder: record_readme(folder, vertex, local.url, local.docker_config),
            "pull-requests": lambda folder: record_pull_requests(folder, vertex),
        }
        try:
            for case in sys.argv[1:] or recorders:
                (Path(name) / case).mkdir()
                recorders[case](Path(name) / case)
        finally:
            vertex.close()
