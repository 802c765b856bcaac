"""What `make env` prints, as a shell understands it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup import exports
from tools.setup.engine import ENGINE_VERSION, cached_bin
from tools.setup.exports import backend_variables, has_backend, prepend

ODD = "it's a $HOME `folder`"
VARIABLES = (
    "PULUMI_BACKEND_URL",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_CREDENTIALS_PATH",
    "PULUMI_CONFIG_PASSPHRASE",
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "PULUMI_SKIP_UPDATE_CHECK",
    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION",
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Callable[[str | Path, str], Path]) -> Path:
    """A checkout in a folder with an odd name, of a user who has set nothing, with an engine in the cache."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi-home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ODD))
    program(cached_bin() / "pulumi", f"echo v{ENGINE_VERSION}")
    program(cached_bin() / "pulumi-language-python", "")
    folder = tmp_path / "checkouts" / ODD
    folder.mkdir(parents=True)
    monkeypatch.setattr(exports, "CHECKOUT", folder)
    monkeypatch.setattr(exports, "VENV", folder / ".venv")
    monkeypatch.setattr(exports, "LOCAL_STATE", folder / ".pulumi-state")
    return folder


def test_exports_survive_odd_folder_names(checkout: Path) -> None:
    seen = _evaluate(exports.render())
    assert seen["PATH"].startswith(f"{checkout}/.venv/bin:{cached_bin()}:")
    assert seen["PULUMI_BACKEND_URL"].startswith("file:///")
    assert seen["PULUMI_CONFIG_PASSPHRASE"] == ""
    assert seen["PULUMI_SKIP_UPDATE_CHECK"] == "true"
    assert seen["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    assert (checkout / ".pulumi-state").is_dir()


def test_the_exports_are_nothing_but_exports(checkout: Path) -> None:
    assert all(line.startswith("export ") for line in exports.render().splitlines())


def test_an_engine_on_path_adds_no_folder(checkout: Path, program: Callable[[str | Path, str], Path]) -> None:
    folder = program("pulumi", "echo v3.300.0").parent
    program("pulumi-language-python", "")
    assert _evaluate(exports.render())["PATH"] == f"{checkout}/.venv/bin:{folder}"


def test_user_settings_are_kept(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "gs://ours")
    monkeypatch.setenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "false")
    printed = exports.render()
    assert "PULUMI_BACKEND_URL" not in printed
    assert "PASSPHRASE" not in printed
    assert "PLUGIN_ACQUISITION" not in printed
    assert not (checkout / ".pulumi-state").exists()


def test_the_state_of_another_checkout_is_left(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / f"other {ODD}"
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend_variables({}, other / ".pulumi-state")["PULUMI_BACKEND_URL"])
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "")
    own = backend_variables({}, checkout / ".pulumi-state")["PULUMI_BACKEND_URL"]
    assert _evaluate(exports.render())["PULUMI_BACKEND_URL"] == own
    assert f"`make env` has set in {other};" in capsys.readouterr().err

    # Where the user has logged in since, that counts in this checkout, too.
    (tmp_path / "pulumi-home").mkdir()
    (tmp_path / "pulumi-home/credentials.json").write_text('{"current": "gs://ours"}')
    assert _evaluate(exports.render())["PULUMI_BACKEND_URL"] == ""


@pytest.mark.parametrize("backend", ["file://~", "file:///work/.pulumi-state", "s3://x/.pulumi-state?metadata=skip"])
def test_a_folder_of_the_user_s_is_kept(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], backend: str
) -> None:
    own = backend_variables({}, checkout / ".pulumi-state")["PULUMI_BACKEND_URL"]
    for each in (backend, own):
        monkeypatch.setenv("PULUMI_BACKEND_URL", each)
        assert _evaluate(exports.render())["PULUMI_BACKEND_URL"] == each
    assert capsys.readouterr().err == ""


def test_path_is_prepended_without_repetition() -> None:
    assert prepend([Path("/venv/bin"), Path("/engine")], "/usr/bin:/venv/bin:/bin") == "/venv/bin:/engine:/usr/bin:/bin"


@pytest.mark.parametrize("path", ["", ".", "bin::/bin:", "/bin:./x"])
def test_no_program_of_the_current_folder_is_run(path: str) -> None:
    assert all(folder.startswith("/") for folder in prepend([Path("/venv/bin")], path).split(":"))


def _evaluate(code: str) -> dict[str, str]:
    script = 'eval "$1"; /usr/bin/env -0'
    result = subprocess.run(["/bin/sh", "-c", script, "sh", code], capture_output=True, text=True, check=True)
    return dict(entry.split("=", 1) for entry in result.stdout.split("\0") if entry)


def test_a_backend_is_recognised_where_pulumi_itself_looks(tmp_path: Path) -> None:
    project, home = tmp_path / "Pulumi.yaml", {"PULUMI_HOME": str(tmp_path)}
    assert not has_backend(home, project)
    assert has_backend(home | {"PULUMI_BACKEND_URL": "s3://ours"}, project)
    assert has_backend(home | {"PULUMI_ACCESS_TOKEN": "pul-1"}, project)
    project.write_text("name: x\nbackend:\n  url: gs://ours\n")
    assert has_backend(home, project)
    project.write_text("name: x\ndescription: a backend: of sorts\n")
    assert not has_backend(home, project)
    (tmp_path / "credentials.json").write_text(json.dumps({"current": "gs://ours"}))
    assert has_backend(home, project)


@pytest.mark.parametrize("content", ["", "{}", '{"current": ""}', "[]", "not JSON"])
def test_without_a_login_there_is_no_backend(tmp_path: Path, content: str) -> None:
    (tmp_path / "credentials.json").write_text(content)
    assert not has_backend({"PULUMI_CREDENTIALS_PATH": str(tmp_path)}, tmp_path / "Pulumi.yaml")


@pytest.mark.parametrize("name", ["PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"])
def test_a_passphrase_of_the_users_is_kept(name: str) -> None:
    assert backend_variables({name: "x"}, Path("/state")) == {"PULUMI_BACKEND_URL": "file:///state?metadata=skip"}
