"""Targets: found by the full resource name when a call is made, so that no address is ever part of the state."""

import pytest

from components import emulator_process, target
from components.errors import SubmitFailed
from vertex.names import ResourceName

PARENT = "projects/local/locations/us-central1"


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the emulator is, call by call; the last one stays."""
    urls = ["http://127.0.0.1:1"]
    monkeypatch.setattr(emulator_process, "url", lambda: urls.pop(0) if len(urls) > 1 else urls[0])
    return urls


def test_a_local_name_leads_to_the_emulator_and_its_page(urls: list[str]) -> None:
    at = target.connect(f"//local/{PARENT}")
    assert (at.parent, at.url) == (PARENT, "http://127.0.0.1:1")
    name = ResourceName.parse(f"{PARENT}/customJobs/7")
    assert at.page(name) == "http://127.0.0.1:1/jobs/customJobs/7"
    assert at.logs(name) == "python -m emulator logs 7"


def test_an_emulator_that_has_moved_is_followed(urls: list[str]) -> None:
    urls.append("http://127.0.0.1:2")
    first, second, third = (target.connect(f"//local/{PARENT}") for _ in range(3))
    assert (first.url, second.url) == ("http://127.0.0.1:1", "http://127.0.0.1:2")
    assert first.client is not second.client
    assert second.client is third.client


@pytest.mark.parametrize("parent", ["//aiplatform.googleapis.com/projects/p/locations/r", PARENT, ""])
def test_a_name_of_another_version_s_target_is_refused(urls: list[str], parent: str) -> None:
    with pytest.raises(SubmitFailed) as failure:
        target.connect(parent)
    assert str(failure.value).startswith(f'"{parent}" in the state is not known to this version')
