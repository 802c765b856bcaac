"""Another Pulumi program uses the components alone: the one on the page on adopting, through the real engine."""

import json
import subprocess
from pathlib import Path

import yaml

from tests.blocks import taken
from tests.engine.project import CHECKOUT, engine_environment
from tests.standins import transit
from tests.standins.gcp import server
from tests.standins.gcp.world import BY_HAND


def test_a_standalone_program_grants_both_agents_repository_access(tmp_path: Path) -> None:
    (program,) = taken("docs/adopting.md", "python")
    root = tmp_path / "other"
    root.mkdir()
    (tmp_path / "state").mkdir()
    (root / "__main__.py").write_text(program)
    (root / ".venv").symlink_to(CHECKOUT / ".venv")
    runtime = {"name": "python", "options": {"virtualenv": ".venv"}}
    (root / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "other", "runtime": runtime}))
    record = tmp_path / "record.jsonl"
    apis = [
        {"operation": "create", "type": "gcp:projects/service:Service", "name": "by-hand", "inputs": inputs}
        for service in ("aiplatform", "artifactregistry", "iam", "workloadidentity", *BY_HAND)
        for inputs in [{"project": "acme-dev", "service": f"{service}.googleapis.com"}]
    ]
    record.write_text("".join(json.dumps(line) + "\n" for line in apis))
    environment = engine_environment(tmp_path) | {"GCP_STANDIN_RECORD": str(record)}
    _provider, port = server.start_server(environment)
    environment["PULUMI_DEBUG_PROVIDERS"] = f"gcp:{port}"
    init = ["stack", "init", "--secrets-provider", transit.PROVIDER, "team"]
    for command in (init, ["up", "--yes", "--skip-preview"], ["preview", "--expect-no-changes"]):
        done = subprocess.run(["pulumi", *command, "--non-interactive"], cwd=root, env=environment,
                              capture_output=True, text=True, timeout=120)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    made = [json.loads(line) for line in record.read_text().splitlines()][len(apis) :]
    assert [(line["type"], line["name"]) for line in made if line["type"].startswith("gcp:artifactregistry")] == [
        ("gcp:artifactregistry/repository:Repository", "images"),
        *(
            ("gcp:artifactregistry/repositoryIamMember:RepositoryIamMember", line["name"])
            for line in made
            if line["name"] in ("access-pull-vertex", "access-pull-custom-code")
        ),
    ]
    assert len(made) == 6  # and the agents themselves with their own roles
