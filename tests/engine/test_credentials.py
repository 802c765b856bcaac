"""Who uploads a package through the real engine, by the stack's config or the environment, and that no token stays."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.cloud import CloudProject
from tests.standins.google_apis import GoogleApisStandIn, google_apis
from tests.vertex_emulator.running import IMAGE, RunningEmulator

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")
STORAGE = "storage.googleapis.com"


@pytest.fixture
def apis(tmp_path: Path) -> Iterator[GoogleApisStandIn]:
    with google_apis(tmp_path) as made:
        yield made


def test_a_token_of_config_or_environment_uploads(
    tmp_path: Path, vertex: RunningEmulator, apis: GoogleApisStandIn
) -> None:
    project = CloudProject(tmp_path, vertex)
    project.declarations["images"] = {"trainer": {"uri": IMAGE}}
    project.declarations["packages"] = {"script": {"script": "trainer/train.py"}}
    project.container["command"], project.container["args"] = ["true"], ["${packages.script}"]
    project.declare()
    project.environment |= apis.variables | {"GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.canary-of-the-environment"}
    seen = [project.up()]
    assert {*apis.callers.pop(STORAGE)} == {"ya29.canary-of-the-environment"}
    project.edit_code()
    project.pulumi("config", "set", "--secret", "gcp:accessToken", "ya29.canary-of-the-config", "--stack", "dev")
    assert STORAGE not in apis.callers, "nothing calls before an update"
    seen += [project.pulumi("preview", "--diff", "--stack", "dev"), project.up("--diff")]
    assert {*apis.callers.pop(STORAGE)} == {"ya29.canary-of-the-config"}
    assert "canary" not in "".join([*seen, project.read_state()])
