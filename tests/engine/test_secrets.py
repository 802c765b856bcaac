"""Secrets of Secret Manager in the stack `local`: from the stack's config to the trainer, and nowhere else."""

from tests.engine.project import Project
from tests.vertex_emulator.running import IMAGE

READ = """
import base64, json, os, urllib.request
url = f"{os.environ['SECRET_MANAGER_API_ENDPOINT']}/v1/{os.environ['HF_TOKEN']}:access"
request = urllib.request.Request(url, headers={"X-Goog-Api-Key": os.environ["SECRET_MANAGER_API_KEY"]})
value = base64.b64decode(json.load(urllib.request.urlopen(request))["payload"]["data"]).decode()
raise SystemExit(0 if value[::-1] == os.environ["REVERSED"] else f"another value of {len(value)} characters")
"""


def test_trainers_read_secrets_of_the_stack(project: Project) -> None:
    first, second = "open-sesame-1", "open-sesame-2"
    project.declarations["images"] = {}
    project.declarations["vars"] = {"token": "projects/local/secrets/hf-token/versions/latest", "reversed": first[::-1]}
    env = {"HF_TOKEN": "${vars.token}", "REVERSED": "${vars.reversed}"}
    project.container.update(
        imageUri=IMAGE,
        command=["python3", "-c", READ],
        args=[],
        env=[{"name": name, "value": value} for name, value in env.items()],
    )
    project.declare()
    set_secret(project, first)
    shown = project.up()
    pid = project.endpoint()["pid"]
    set_secret(project, second)
    # Not by `declare`, which writes the stack file as it was.
    declarations = project.root / "training" / "jobs.yaml"
    declarations.write_text(declarations.read_text().replace(first[::-1], second[::-1]))
    shown += project.up()
    assert project.endpoint()["pid"] == pid
    assert project.outputs()["results"]["train"]["state"] == "JOB_STATE_SUCCEEDED"
    state = project.read_state()
    assert not [value for value in (first, second) if value in shown + state]
    project.assert_no_changes()


def set_secret(project: Project, value: str) -> None:
    """Put an encrypted value into the stack file."""
    key = "vertex-training:emulator.secrets.hf-token"
    project.pulumi("config", "set", "--secret", "--path", key, value, "--stack", "local")
