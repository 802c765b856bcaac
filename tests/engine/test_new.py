"""`pulumi new` from the template: a project of its own, which trains as it is."""

import base64
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from vertex_training.errors import DeclarationErrors
from vertex_training.settings.settings import NUMBER

from tests import git_server, terminal
from tests.blocks import taken
from tests.engine.checkout import NAMES, parse_settings, read_stack_config
from tests.engine.project import CHECKOUT, engine_environment
from tests.packaging.building import wheel
from tests.packaging.installed import InstalledProject
from tests.packaging.test_wheel import requirement_closure
from tests.standins import transit
from tests.standins.gcp import server
from tests.vertex_emulator.running import PATIENCE_SECONDS
from tools.setup import commands
from tools.template import TEMPLATE, tracked_files
from vertex_api import __version__

MAX_FILES = 12
MAX_PROVIDER_BYTES = 200
WORKFLOW = ".github/workflows/training.yml"
FILES = {str(Path(file).relative_to("template")) for file in tracked_files() if file.startswith("template/")}


@pytest.fixture(scope="module")
def template() -> Path:
    """Return the folder that `make -s template` prints: the template with a wheel beside it."""
    command = [sys.executable, "-m", "tools.template"]
    printed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return Path(printed.stdout.strip())


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "state").mkdir()
    return {**engine_environment(tmp_path), "GCP_STANDIN_RECORD": str(tmp_path / "record.jsonl")}


def create_project(source: Path, folder: Path, environment: dict[str, str]) -> InstalledProject:
    """Let `pulumi new` make the project `demo` from a template, without what it would install."""
    root = folder / "demo"
    command = ["pulumi", "new", str(source), f"--dir={root}", "--name=demo", "--description=Ours", "--generate-only"]
    subprocess.run(
        [*command, "--yes", "--non-interactive"], cwd=folder, env=environment, check=True, timeout=PATIENCE_SECONDS
    )
    return InstalledProject(folder, root)


def test_the_template_is_small_and_pins_the_package() -> None:
    assert len(FILES) <= MAX_FILES
    assert (TEMPLATE / "requirements.txt").read_text() == f"vertex-training[emulator]=={__version__}\n"


def test_the_template_s_program_is_the_checkout_s() -> None:
    program = (CHECKOUT / "__main__.py").read_text()
    assert (TEMPLATE / "__main__.py").read_text() == program.replace("from vertex_training ", "from vertex_training ")


def test_make_template_puts_a_wheel_beside_its_requirement(template: Path) -> None:
    (built,) = template.glob("*.whl")
    files = {str(file.relative_to(template)) for file in template.rglob("*") if file.is_file()}
    assert files == FILES | {built.name}
    assert (template / "requirements.txt").read_text() == f"./{built.name}[emulator]\n"


def test_a_new_project_trains_and_is_destroyed(template: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    project = create_project(template, tmp_path, environment)
    project.install("--requirement=requirements.txt", requirements=requirement_closure("emulator"))
    assert yaml.safe_load((project.root / "Pulumi.yaml").read_text())["name"] == "demo"
    project.pulumi("stack", "select", "--create", "--secrets-provider", transit.PROVIDER, "local")
    try:
        assert str(CHECKOUT) not in project.run(
            "python", "-c", "import sys; print([p for p in sys.path if 'site' not in p])"
        )
        printed = project.pulumi("up", "--yes", "--skip-preview", "--stack=local")
        results = json.loads(project.pulumi("stack", "output", "results", "--stack=local"))
        assert results["line"]["state"] == "JOB_STATE_SUCCEEDED"
        metrics = results["line"]["metrics"]
        assert metrics.keys() == {"meanSquaredError", "steps"}
        assert f"line: meanSquaredError {metrics['meanSquaredError']:.4g}, steps {metrics['steps']:g}" in printed
        (model,) = (project.root / ".emulator" / "gcs").rglob("line.json")
        assert json.loads(model.read_text())["slope"] == pytest.approx(3, abs=0.01)
        project.pulumi("preview", "--stack=local", "--expect-no-changes")
        with _packages_of_checkout(project, tmp_path / "checkout"):
            project.pulumi("preview", "--stack=local", "--expect-no-changes")
            project.pulumi("config", "set", "--stack=local", "--path", "vertex-training:vars.steps", "30")
            project.pulumi("up", "--yes", "--skip-preview", "--stack=local")
        project.pulumi("preview", "--stack=local", "--expect-no-changes")
        state = project.read_state()
        assert "components." not in json.dumps(state)
        providers = [item["inputs"]["__provider"] for item in state if "__provider" in item.get("inputs", {})]
        assert len(providers) == 5
        for provider in providers:
            assert len(provider) < MAX_PROVIDER_BYTES
            assert b"vertex_training." in base64.b64decode(provider)
        project.pulumi("destroy", "--yes", "--skip-preview", "--stack=local")
    finally:
        project.stop_emulator()
    (uri,) = set(re.findall(r"localhost/demo/line:[0-9a-f]{16}", printed))
    subprocess.run(["docker", "image", "rm", "--no-prune", uri], capture_output=True, check=True)


@contextmanager
def _packages_of_checkout(project: InstalledProject, folder: Path) -> Iterator[None]:
    """Let a project's program and providers be those of this checkout, in place of the installed ones."""
    folder.mkdir()
    for name, room in commands.PACKAGES.items():
        (folder / name).symlink_to(CHECKOUT / room)
    project.environment["PYTHONPATH"] = str(folder)
    where = project.run("python", "-c", "import vertex_training; print(vertex_training.__path__[0])")
    assert where.strip() == str(folder / "vertex_training")
    yield
    del project.environment["PYTHONPATH"]


def test_pulumi_new_says_what_the_pages_say(tmp_path: Path, environment: dict[str, str]) -> None:
    """The page's own command, which asks nothing: it has no terminal here."""
    (folder,) = taken("docs/install.md", "sh", "pulumi new ")
    command = folder.replace('"$(make -s template)"', shlex.quote(str(TEMPLATE))).replace("../", "")
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    own = done.stdout.partition("Then, run `pulumi up`")[2].splitlines()
    commands = [line.strip() for line in own if line.startswith("   pulumi ")]
    pages = [*taken("docs/install.md", "sh", "export PULUMI_BACKEND_URL"), (TEMPLATE / "README.md").read_text()]
    assert len(commands) == 3 and all(each in page for each in commands for page in pages)
    assert "quickstart" not in (tmp_path / "training" / "Pulumi.yaml").read_text()


def test_a_new_dev_stack_previews_with_three_settings(tmp_path: Path, environment: dict[str, str]) -> None:
    """The template's own requirement takes the package from an index."""
    project = create_project(TEMPLATE, tmp_path, environment)
    assert {str(file.relative_to(project.root)) for file in project.root.rglob("*") if file.is_file()} == FILES
    assert (project.root / "README.md").read_text().startswith("# demo\n\nOurs\n")
    # The engine fills in its own placeholders only, and leaves GitHub's.
    assert (project.root / WORKFLOW).read_text() == (TEMPLATE / WORKFLOW).read_text()
    options = [f"--find-links={wheel().parent}", "--requirement=requirements.txt", "--constraint=tested.txt"]
    project.install(*options, requirements=requirement_closure("emulator"))
    _gcp, port = server.start_server(environment)
    project.environment["PULUMI_DEBUG_PROVIDERS"] = f"gcp:{port}"
    project.pulumi("stack", "init", "--secrets-provider", transit.PROVIDER, "dev")
    names = [option for key, value in NAMES.items() for option in ("--plaintext", f"vertex-training:{key}={value}")]
    project.pulumi("config", "set-all", *names, "--stack=dev")
    shown = project.pulumi("preview", "--diff", "--stack=dev")
    assert f"{NAMES['region']}-docker.pkg.dev/{NAMES['project']}/training/line:" in shown
    assert "trainer/Dockerfile:1: FROM python:3.11-slim-bookworm is not pinned" in shown
    number = "service-123456789012@gcp-sa-aiplatform"
    assert number in shown

    # The same with the provider's own keys: the number is looked up.
    for key in NAMES:
        project.pulumi("config", "rm", "--stack=dev", f"vertex-training:{key}")
    for key in ("project", "region"):
        project.pulumi("config", "set", "--stack=dev", f"gcp:{key}", NAMES[key])
    assert number in project.pulumi("preview", "--diff", "--stack=dev")
    project.pulumi("config", "set", "--stack=dev", "gcp:project", "acme-unknown")
    refused = project.run("pulumi", "preview", "--stack=dev", "--non-interactive", exit_code=1)
    (line,) = [
        line for line in map(str.strip, refused.splitlines()) if line.startswith(f"error: {NUMBER}: is not given")
    ]
    assert "does not tell that of acme-unknown" in line and "Error 403: The caller does not have permission" in line


@pytest.mark.skipif(bool(git_server.why_impossible()), reason=git_server.why_impossible())
def test_pulumi_new_asks_nothing_of_ours(tmp_path: Path, environment: dict[str, str]) -> None:
    repository = tmp_path / "served" / "team" / "training.git"
    shutil.copytree(TEMPLATE, repository / "template", ignore=shutil.ignore_patterns("__pycache__"))
    _remove_runtime(repository / "template")
    git_server.commit(repository)
    root = tmp_path / "demo"
    with git_server.serving(tmp_path / "served", tmp_path / "certificate.pem") as url:
        command = ["pulumi", "new", f"{url}/team/training/template", f"--dir={root}", "--name=demo", "--stack=dev"]
        questions, _ = terminal.talk(
            [*command, "--description=Ours"],
            {},
            cwd=tmp_path,
            environment=environment | {"SSL_CERT_FILE": str(tmp_path / "certificate.pem")},
        )
    assert questions == []
    assert {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()} == FILES
    assert read_stack_config(root, "dev") == read_stack_config(TEMPLATE, "dev")
    with pytest.raises(DeclarationErrors, match="vertex-training:project: is required by the target gcp"):
        parse_settings(root, "dev", read_stack_config(root, "dev"))
    parse_settings(root, "local", read_stack_config(root, "local"))


def _remove_runtime(template: Path) -> None:
    """Remove the runtime from a template, so that `pulumi new` installs nothing."""
    described = dict(yaml.safe_load((template / "Pulumi.yaml").read_text()))
    del described["runtime"]
    (template / "Pulumi.yaml").write_text(yaml.safe_dump(described))
