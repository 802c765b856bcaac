"""Secrets of a local stack, followed through all that a run writes, shows and starts."""

import base64
import gzip
import json
import os
import stat
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest
import yaml

from tests.engine.project import SLEEP, Project, create_project
from tests.engine.test_lifecycle import ENDED, quick_job, until

CORES = {
    "stack": "canaryStackQ7e1xT4wZ",
    "emulator": "canaryEmulatorQ7e2xT4wZ",
    "google": "canaryGoogleQ7e3xT4wZ",
    "hub": "canaryHubQ7e4xT4wZ",
    "registry": "canaryRegistryQ7e5xT4wZ",
}
SECRETS = {name: f"+/&é<{core}=%" for name, core in CORES.items()}
"""With characters that URLs, JSON and shells write in other ways, around some that all write alike."""


FAILING = "echo it begins; exit 3"
"""What prints no secret: what a container prints is in its log."""


def forms(core: str) -> set[bytes]:
    """How part of a secret is written: as it is, in hexadecimal digits, and in base64 at any place of a text."""
    data = core.encode()
    found = {data, data.hex().encode(), data.hex().upper().encode()}
    for shift in range(3):  # the first and the last digits depend on what stands around
        found.add(base64.b64encode(b"x" * shift + data)[4:-4])
    return found


FORMS = {name: forms(core) for name, core in CORES.items()}


def names(data: bytes | str) -> set[str]:
    """Return whose secrets a text has, in whatever form."""
    text = data.encode(errors="surrogateescape") if isinstance(data, str) else data
    return {name for name, found in FORMS.items() if any(form in text for form in found)}


@dataclass
class Processes:
    """Reads what all processes of the machine show of themselves, again and again while it runs."""

    commands: dict[str, set[str]] = field(default_factory=dict)
    """By command line: the secrets in it."""
    environments: dict[str, set[str]] = field(default_factory=dict)
    """By program: the secrets in its environment. Other users cannot read that."""

    def __enter__(self) -> "Processes":
        self._ended = threading.Event()
        self._known: set[tuple[str, bytes]] = set()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @staticmethod
    def _read_again(process: Path) -> bytes:
        try:
            return (process / "cmdline").read_bytes()
        except OSError:
            return b""

    def _watch(self) -> None:
        """Read new processes at each look, as they become other programs, and those that stay at each tenth."""
        looks: dict[str, int] = {}
        while not self._ended.is_set():
            there = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - it is done often
            looks = {name: looks.get(name, 0) + 1 for name in there}
            for name in (each for each, times in looks.items() if times <= 10 or times % 10 == 0):
                self._read(Path("/proc", name))
            self._ended.wait(0.02)

    def _read(self, process: Path) -> None:
        try:
            command = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
        except OSError:
            return
        if not command or command != self._read_again(process):
            return  # it has just become another program
        shown = command.replace(b"\0", b" ").decode(errors="replace")
        self.commands.setdefault(shown, names(command))
        if (shown, environment) not in self._known:
            self._known.add((shown, environment))
            self.environments[shown] = self.environments.get(shown, set()) | names(environment)


@dataclass
class Followed:
    """What a run has shown and left, by where it is."""

    project: Project
    processes: Processes
    texts: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    """A stack of a job that has a secret, one that fails and an image, from its preview to its failed update."""
    folder = tmp_path_factory.mktemp("canary")
    with create_project(folder) as project:
        project.environment |= {
            "GOOGLE_OAUTH_ACCESS_TOKEN": SECRETS["google"],
            "HF_TOKEN": SECRETS["hub"],
            "DOCKER_CONFIG": str(folder / "docker"),
        }
        (folder / "docker").mkdir()
        login = base64.b64encode(f"user:{SECRETS['registry']}".encode()).decode()
        auths = {"auths": {"registry.test": {"auth": login}}}
        (folder / "docker" / "config.json").write_text(json.dumps(auths))
        project.use_own_image("canary")
        project.container["env"] = [{"name": "TOKEN", "value": "${secrets.token}"}]
        command = [*SLEEP, "600"]
        project.declarations["customJobs"]["sleep"] = quick_job(command=command, env=project.container["env"])
        project.declare()
        options = ("--stack", project.name)
        keys = {"secrets.token": SECRETS["stack"], "emulator.secrets.hf-token": SECRETS["emulator"]}
        values = [part for key, value in keys.items() for part in ("--secret", f"vertex-training:{key}={value}")]
        project.pulumi("config", "set-all", "--path", *values, *options)
        project.stack = yaml.safe_load((project.root / "stacks" / "Pulumi.local.yaml").read_text())["config"]
        texts: dict[str, str] = {}
        plan = str(folder / "plan.json")
        texts["preview"] = project.pulumi("preview", "--diff", "--debug", "--save-plan", plan, *options)
        texts["plan"] = (folder / "plan.json").read_text()
        with Processes() as processes:
            texts["up"] = project.start_pulumi("up", "--yes", "--skip-preview", *options).communicate(timeout=240)[0]
            project.container["command"] = ["sh", "-c", FAILING]
            project.declare()
            texts["failing up"] = project.up("--refresh", "--diff", fails=True)
        texts["outputs"] = project.pulumi("stack", "output", "--json", *options)
        texts["logs"] = project.pulumi("logs", *options)
        preview = folder / "preview.json"
        texts["preview --json"] = project.pulumi("preview", "--json", "--show-sames", "--refresh", "--debug", *options)
        preview.write_text(texts["preview --json"])
        for form in ("markdown", "json"):
            review = [sys.executable, "-m", "vertex_training.cli", "review", "--format", form, str(preview)]
            done = subprocess.run(review, env=project.environment, check=True, capture_output=True, text=True)
            texts[f"review {form}"] = done.stdout
        yield Followed(project, processes, texts)


class TestCanary:
    """One run is followed by all of them."""

    def test_nothing_that_pulumi_shows_has_a_secret(self, followed: Followed) -> None:
        assert "Resources:" in followed.texts["up"] and "refresh" in followed.texts["failing up"]
        assert "it begins" in followed.texts["failing up"] and "exited with" in followed.texts["failing up"]
        shown = {name: names(text) for name, text in followed.texts.items()}
        assert shown == {name: set() for name in shown}

    def test_files_of_pulumi_and_the_cache_have_no_secret(self, followed: Followed) -> None:
        folder = followed.project.root.parent
        found = {}
        for file in (*folder.glob("state/**/*"), *folder.glob("home/**/*"), *followed.project.root.glob("*/*.yaml")):
            if file.is_file() and not file.is_symlink() and (held := names(file.read_bytes())):
                found[str(file.relative_to(folder))] = held
        assert found == {}

    def test_no_command_line_has_a_secret(self, followed: Followed) -> None:
        """Every user of the machine can read those. An environment is its user's alone."""
        assert len(followed.processes.commands) > 10
        assert {command: held for command, held in followed.processes.commands.items() if held} == {}
        # The engine hands the stack's config to the program as a variable. Nothing that this module starts has it.
        own = {
            command: held & {"stack", "emulator", "registry"}
            for command, held in followed.processes.environments.items()
        }
        holders = [command for command, held in own.items() if held and "pulumi-language-python-exec" not in command]
        containers = ("python -u /train.py", "sleep 600", "sh -c ")
        assert holders and [command for command in holders if not command.startswith(containers)] == []

    def test_docker_shows_a_container_s_own_secret_alone(self, followed: Followed) -> None:
        with closing(docker.from_env()) as client:
            mine = {"label": f"vertex-training.emulator={followed.project.emulator_id}"}
            (container,) = (found.attrs for found in client.containers.list(all=True, filters=mine))
            image = client.images.get(followed.project.outputs()["images"]["trainer"])
            others = [image.attrs, image.history(), [network.attrs for network in client.networks.list()]]
            assert names(b"".join(image.save())) == names(json.dumps(others)) == set()
        environment = container["Config"].pop("Env")
        assert (names(json.dumps(environment)), names(json.dumps(container))) == ({"stack"}, set())

    def test_the_emulator_shows_no_secret_but_to_its_owner(self, followed: Followed, tmp_path: Path) -> None:
        project = followed.project
        (sleeping,) = (job["name"] for job in project.list_jobs() if job["displayName"] == "sleep")
        for path in ("/", *(f"/jobs/customJobs/{job['name'].rpartition('/')[2]}" for job in project.list_jobs())):
            with urllib.request.urlopen(project.endpoint()["url"] + path) as page:
                assert names(page.read()) == set(), path
        project.request("POST", f"{sleeping}:cancel")
        until(lambda: all(job["state"] in ENDED for job in project.list_jobs()), "the end of all jobs")
        assert project.run_emulator("stop").returncode == 0
        files = {file.relative_to(project.data).as_posix(): file for file in project.data.rglob("*") if file.is_file()}
        held = {name: found for name, file in files.items() if (found := names(file.read_bytes()))}
        database = {name: {"stack"} for name in held if name.startswith("emulator.db")}
        assert held == {"secrets.json": {"emulator"}, **database} and database
        assert stat.S_IMODE(project.data.stat().st_mode) == 0o700
        for options, expected in (([], {"stack"}), (["--redact-env"], set[str]())):
            archive = tmp_path / f"{len(options)}.tar.gz"
            assert project.run_emulator("export", *options, str(archive)).returncode == 0
            with gzip.open(archive) as stream:
                assert names(stream.read()) == expected
            assert stat.S_IMODE(archive.stat().st_mode) == 0o600
