"""The page of schedules: next times, runs with links to their jobs, and what its buttons do."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.vertex_emulator.instant_containers import use_instant_containers
from tests.vertex_emulator.page.axe import assert_accessible
from tests.vertex_emulator.running import PARENT, RunningEmulator, custom_job, pool

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[RunningEmulator]:
    started = RunningEmulator(tmp_path / "data", prepare=partial(use_instant_containers, tmp_path / "containers"))
    yield started
    started.close()


def test_schedules_show_times_and_fire(emulator: RunningEmulator, visit: Callable[..., Page]) -> None:
    page = visit(f"{emulator.url}/schedules")
    expect(page.get_by_text("No schedules yet.")).to_be_visible()
    assert_accessible(page)
    emulator.call("PUT", "vertex_emulator/clock", {"time": "2026-11-22T00:00:00Z"})
    outputs = {"outputUriPrefix": "gs://bucket/nightly/${run.id}"}
    body = custom_job(pool("pass"), name="train-${run.id}", baseOutputDirectory=outputs)
    jobs = [{"name": HOSTILE, "collection": "customJobs", "body": body}]
    schedule = f"vertex_emulator/{PARENT}/schedules/local-nightly"
    emulator.call("PUT", schedule, {"cron": "0 2 * * *", "jobs": jobs, "paused": True})
    page.reload()
    section = page.get_by_role("region", name="local-nightly", exact=True)
    expect(section.get_by_text("Paused", exact=True)).to_be_visible()
    section.get_by_role("button", name="resume local-nightly").click()
    expect(section.locator("time").first).to_have_attribute("datetime", "2026-11-22T02:00:00Z")
    section.get_by_role("button", name="Run local-nightly now").click()
    expect(section.get_by_text("Succeeded")).to_be_visible()
    (run,) = emulator.call("GET", schedule)["runs"]
    job = run["jobs"][HOSTILE].split("/")
    expect(section.get_by_role("link", name=HOSTILE)).to_have_attribute("href", f"/jobs/{job[-2]}/{job[-1]}")
    expect(section.get_by_role("link", name=run["modelDirs"][HOSTILE])).to_be_visible()
    assert_accessible(page)
    section.get_by_role("button", name="pause local-nightly").click()
    expect(section.get_by_text("Paused", exact=True)).to_be_visible()
    assert emulator.call("GET", schedule)["paused"]
