"""Images for one of Google's registries, pushed with a key, a token or an identity pool, through the real engine.

The account's key and where its tokens come from are the tests' own, as is the registry; `google.auth.default()`, Docker
and the push are real.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from tests import buildx
from tests.engine.cloud import CloudProject
from tests.engine.test_canary import Processes
from tests.faults.docker_daemon import DockerDaemon
from tests.standins.artifact_registry import HOST, TokensStandIn, artifact_registry, tokens, why_impossible
from tests.vertex_emulator.running import RunningEmulator

pytestmark = pytest.mark.skipif(bool(why_impossible()), reason=why_impossible())
TOKEN = "ya29.canary-of-a-google-token"
SUBJECT = "canary-of-an-identity-provider"
LOUD = ("--debug", "--logtostderr", "-v=9")
"""All that the engine can say of what it does."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[DockerDaemon]:
    with artifact_registry(TOKEN) as made:
        yield made


@pytest.fixture(scope="class")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("google-token")


@pytest.fixture(scope="class")
def account(folder: Path) -> Iterator[TokensStandIn]:
    with tokens(folder, TOKEN) as made:
        yield made


@pytest.fixture(scope="class")
def cloud(folder: Path, vertex: RunningEmulator, daemon: DockerDaemon, account: TokensStandIn) -> CloudProject:
    """A stack `dev` that makes its own repository, with an image and nothing to run it."""
    project = CloudProject(folder, vertex)
    del project.declarations["customJobs"], project.declarations["vars"]
    (project.root / "trainer" / "Dockerfile").write_text("FROM scratch\nCOPY train.py /\n")
    (folder / "docker").mkdir()
    project.environment |= {
        "DOCKER_HOST": daemon.host,
        "DOCKER_CONFIG": str(folder / "docker"),
        "GOOGLE_APPLICATION_CREDENTIALS": str(account.credentials),
    }
    project.declare()
    return project


class TestToken:
    """Tests of one stack, in order: previews, pushes that fail, and one push by each builder."""

    def test_a_preview_asks_for_no_token(self, cloud: CloudProject, account: TokensStandIn) -> None:
        shown = cloud.pulumi("preview", "--diff", "--stack", "dev")
        assert account.asked == 0
        assert "[unknown]" not in shown[: shown.index("--outputs:--")]

    def test_a_rejected_or_missing_token_is_one_error(
        self, cloud: CloudProject, daemon: DockerDaemon, account: TokensStandIn
    ) -> None:
        account.token = f"{TOKEN}-of-someone-else"
        refused = cloud.up(*LOUD, fails=True)
        assert f"{HOST}/acme-dev/vertex-training-dev/trainer:" in refused and "its registry refuses" in refused
        assert "your account needs roles/artifactregistry.writer on the repository" in refused
        account.token = None
        unknown = cloud.up(*LOUD, fails=True)
        assert "no valid Google credentials for its registry" in unknown
        assert_no_token_in(account, [refused, unknown, *collect_remains(cloud, daemon)])
        account.token = TOKEN

    @pytest.mark.parametrize("builder", ["classic", pytest.param("buildx", marks=pytest.mark.large)])
    def test_the_token_is_used_but_never_shown(
        self, cloud: CloudProject, daemon: DockerDaemon, account: TokensStandIn, folder: Path, builder: str
    ) -> None:
        # What one builder has pushed is not what the other finds.
        dockerfile = cloud.root / "trainer" / "Dockerfile"
        dockerfile.write_text(f"{dockerfile.read_text()}LABEL by={builder}\n")
        if builder == "buildx":
            # Beside the classic builder's folder: that one must find no plugin.
            buildx.install(folder / "with-buildx", buildx.program())
            cloud.environment["DOCKER_CONFIG"] = str(folder / "with-buildx")
        account.asked = 0
        with Processes() as processes:
            shown = cloud.up(*LOUD)
        seen = [*processes.commands, shown]
        assert account.asked
        assert "trainer: pushed 1 of 1 layers" in seen[-1]
        assert ("#1 [internal]" in seen[-1] or "[1/1] COPY" in seen[-1]) == (builder == "buildx")
        uri, pinned = (cloud.outputs()[key]["trainer"] for key in ("images", "pinnedImages"))
        assert uri.startswith(f"{HOST}/acme-dev/vertex-training-dev/trainer:")
        with closing(docker.DockerClient(base_url=daemon.host)) as client:
            login = {"username": "oauth2accesstoken", "password": TOKEN}
            assert pinned == f"{uri.rpartition(':')[0]}@{client.images.get_registry_data(uri, auth_config=login).id}"
            image = client.images.get(uri)
            seen += [json.dumps([image.history(), image.attrs]), b"".join(image.save()).decode("latin-1")]
            client.images.remove(uri, force=True)
        assert (cloud.root / "trainer" / "train.py").read_text() in seen[-1]
        assert_no_token_in(account, [*seen, *collect_remains(cloud, daemon)])

    @pytest.mark.parametrize("form", ["token", "federation"])
    def test_other_credentials_push_and_are_not_shown(
        self,
        cloud: CloudProject,
        daemon: DockerDaemon,
        account: TokensStandIn,
        folder: Path,
        form: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        dockerfile = cloud.root / "trainer" / "Dockerfile"
        dockerfile.write_text(f"{dockerfile.read_text()}LABEL pushed-by={form}\n")
        variables = {
            "token": {"GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN, "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "absent")},
            "federation": {"GOOGLE_APPLICATION_CREDENTIALS": str(account.write_federation(SUBJECT))},
        }
        for name, value in variables[form].items():
            monkeypatch.setitem(cloud.environment, name, value)
        account.asked = 0
        with Processes() as processes:
            shown = cloud.up(*LOUD)
        assert "trainer: pushed " in shown and (account.asked > 0) == (form == "federation")
        seen = [shown, *processes.commands, *collect_remains(cloud, daemon)]
        assert_no_token_in(account, seen)
        assert [text[:2000] for text in seen if SUBJECT in text] == []

    def test_a_pushed_image_previews_without_token(self, cloud: CloudProject, account: TokensStandIn) -> None:
        shown = cloud.pulumi("preview", "--json", "--expect-no-changes", "--stack", "dev")
        assert_no_token_in(account, [shown])


def collect_remains(cloud: CloudProject, daemon: DockerDaemon) -> list[str]:
    """Return all that the stack's backend stores, and Docker's log."""
    state = list(cloud.root.parent.glob("state/**/*.json"))
    assert state
    return [file.read_text(errors="replace") for file in (*state, daemon.folder / "log")]


def assert_no_token_in(account: TokensStandIn, seen: list[str]) -> None:
    """Assert that no text holds a token, or the key that tokens are issued for."""
    for canary in (TOKEN, account.private_key):
        assert [text[:2000] for text in seen if canary in text] == []
