"""`pulumi new` from the template: a project of its own, which trains as it is."""

import base64
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from vertex_training.errors import DeclarationErrors

import tools.template
from tests import git_server, terminal
from tests.blocks import taken
from tests.engine.checkout import NAMES, parse_settings, read_stack_config
from tests.engine.project import CHECKOUT, STARTUP, package_list, plain_environment
from tests.packaging.building import PIP, wheel
from tests.packaging.installed import InstalledProject
from tests.packaging.test_wheel import requirement_closure
from tests.standins import transit
from tests.standins.gcp import server
from tests.vertex_emulator.running import PATIENCE_SECONDS
from tools.setup import commands
from tools.template import TEMPLATE, tracked_files
from vertex_api import __version__
from vertex_emulator.cli import emulator
from vertex_emulator.pruning import clear

MAX_FILES = 12
MAX_PROVIDER_BYTES = 200
WORKFLOW = ".github/workflows/training.yml"
FILES = {str(Path(file).relative_to("template")) for file in tracked_files() if file.startswith("template/")}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that `make -s template` prints: the template, written anew, with a wheel beside it."""
    folder = tmp_path_factory.mktemp("checkout") / ".template"
    folder.mkdir()
    (folder / "of-an-older-one.whl").touch()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        patch.setattr("tools.template.WRITTEN", folder)
        patch.setattr("tools.template.build_wheel", lambda where: Path(shutil.copy(wheel(), where)))
        patch.setattr("sys.argv", ["tools.template"])
        assert tools.template.main() == 0
    return Path(printed.getvalue().strip())


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "state").mkdir()
    return {**plain_environment(tmp_path), "GCP_STANDIN_RECORD": str(tmp_path / "record.jsonl")}


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


@pytest.fixture(scope="module")
def installed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> InstalledProject:
    """A new project of its own, with the packages of its `requirements.txt`."""
    folder = tmp_path_factory.mktemp("new")
    (folder / "state").mkdir()
    project = create_project(template, folder, plain_environment(folder))
    project.install("--requirement=requirements.txt", requirements=requirement_closure("emulator"))
    (site,) = project.root.glob(".venv/lib/python*/site-packages")
    # Pulumi asks for the list of packages with every command: it is made once.
    (site / "pip").symlink_to(STARTUP / "pip")
    project.environment["PACKAGE_LIST"] = str(package_list())
    return project


def test_a_new_project_trains_and_is_destroyed(installed: InstalledProject, tmp_path: Path) -> None:
    project = installed
    assert yaml.safe_load((project.root / "Pulumi.yaml").read_text())["name"] == "demo"
    project.pulumi("stack", "select", "--create", "--secrets-provider", transit.PROVIDER, "local")
    up = ("up", "--yes", "--skip-preview", "--stack=local")
    data = project.root / ".emulator"
    try:
        assert str(CHECKOUT) not in project.run(
            "python", "-c", "import sys; print([p for p in sys.path if 'site' not in p])"
        )
        printed = project.pulumi(*up)
        (stack,) = (each for each in read_state(project) if each["type"] == "pulumi:pulumi:Stack")
        result = stack["outputs"]["results"]["line"]
        assert result["state"] == "JOB_STATE_SUCCEEDED"
        metrics = result["metrics"]
        assert metrics.keys() == {"meanSquaredError", "steps"}
        assert f"line: meanSquaredError {metrics['meanSquaredError']:.4g}, steps {metrics['steps']:g}" in printed
        (model,) = (data / "gcs").rglob("line.json")
        assert json.loads(model.read_text())["slope"] == pytest.approx(3, abs=0.01)
        with _packages_of_checkout(project, tmp_path / "checkout"):
            edited = project.pulumi(*up, "--config=vertex-training:vars.steps=30", "--config-path")
        # What the other's packages have made is unchanged in the eyes of these.
        assert re.findall(r"^ *(?:~|\+-) +\S+ (\S+) (?:updated|replaced)", edited, re.MULTILINE) == [
            "line",
            "wait-for-jobs",
        ]
        project.pulumi("preview", "--stack=local", "--expect-no-changes")
        state = read_state(project)
        assert "components." not in json.dumps(state)
        providers = [item["inputs"]["__provider"] for item in state if "__provider" in item.get("inputs", {})]
        assert len(providers) == 5
        for provider in providers:
            assert len(provider) < MAX_PROVIDER_BYTES
            assert b"vertex_training." in base64.b64decode(provider)
        project.pulumi("destroy", "--yes", "--skip-preview", "--stack=local")
    finally:
        if data.exists():
            emulator.stop(data)
            clear(data)
    (uri,) = set(re.findall(r"localhost/demo/line:[0-9a-f]{16}", printed))
    subprocess.run(["docker", "image", "rm", "--no-prune", uri], capture_output=True, check=True)


def read_state(project: InstalledProject) -> list[dict[str, Any]]:
    """Return the resources of the stack `local`."""
    (file,) = project.root.parent.glob("state/.pulumi/stacks/*/local.json")
    return list(json.loads(file.read_text())["checkpoint"]["latest"]["resources"])


@contextmanager
def _packages_of_checkout(project: InstalledProject, folder: Path) -> Iterator[None]:
    """Let a project's program and providers be those of this checkout, in place of the installed ones."""
    folder.mkdir()
    for name, room in commands.PACKAGES.items():
        (folder / name).symlink_to(CHECKOUT / room)
    project.environment["PYTHONPATH"] = str(folder)
    find = "from importlib.util import find_spec; print(find_spec('vertex_training').origin)"
    assert Path(project.run("python", "-c", find).strip()).parent == folder / "vertex_training"
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


def test_a_new_dev_stack_previews_with_two_settings(installed: InstalledProject, tmp_path: Path) -> None:
    """Its project and region, as its file says; the project's number is looked up."""
    project = installed
    environment = {**project.environment, "GCP_STANDIN_RECORD": str(tmp_path / "record.jsonl")}
    _gcp, port = server.start_server(environment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(project.environment, "PULUMI_DEBUG_PROVIDERS", f"gcp:{port}")
        project.pulumi("stack", "init", "--secrets-provider", transit.PROVIDER, "dev")
        names = [f"--config=gcp:{key}={NAMES[key]}" for key in ("project", "region")]
        shown = project.pulumi("preview", "--diff", "--stack=dev", *names)
    assert f"{NAMES['region']}-docker.pkg.dev/{NAMES['project']}/training/line:" in shown
    assert "trainer/Dockerfile:1: FROM python:3.11-slim-bookworm is not pinned" in shown
    assert f"service-{NAMES['projectNumber']}@gcp-sa-aiplatform" in shown


def test_an_index_has_what_the_template_requires() -> None:
    """With the versions that are tested together."""
    options = [f"--find-links={wheel().parent}", "--requirement=requirements.txt", "--constraint=tested.txt"]
    command = [*PIP, "install", "--dry-run", "--no-index", "--ignore-installed", "--no-deps", *options]
    done = subprocess.run(command, cwd=TEMPLATE, capture_output=True, text=True, check=True)
    assert f"Would install vertex-training-{__version__}" in done.stdout


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
    assert (root / "README.md").read_text().startswith("# demo\n\nOurs\n")
    # The engine fills in its own placeholders only, and leaves GitHub's.
    assert (root / WORKFLOW).read_text() == (TEMPLATE / WORKFLOW).read_text()
    assert read_stack_config(root, "dev") == read_stack_config(TEMPLATE, "dev")
    with pytest.raises(DeclarationErrors, match="vertex-training:project: is required by the target gcp"):
        parse_settings(root, "dev", read_stack_config(root, "dev"))
    names = {f"vertex-training:{key}": value for key, value in NAMES.items()}
    parse_settings(root, "dev", read_stack_config(root, "dev") | names)
    parse_settings(root, "local", read_stack_config(root, "local"))


def _remove_runtime(template: Path) -> None:
    """Remove the runtime from a template, so that `pulumi new` installs nothing."""
    described = dict(yaml.safe_load((template / "Pulumi.yaml").read_text()))
    del described["runtime"]
    (template / "Pulumi.yaml").write_text(yaml.safe_dump(described))
