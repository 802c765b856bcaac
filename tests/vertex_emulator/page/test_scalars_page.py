"""The scalars of a trainer that writes TensorBoard's event files, as its job's page draws them."""

import importlib.util
import re
import shutil
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.vertex_emulator.page.axe import assert_accessible
from tests.vertex_emulator.page.test_live_page import address
from tests.vertex_emulator.running import RunningEmulator, custom_job, pool, until
from tests.vertex_emulator.test_studies import REPORT, study

Visit = Callable[..., Page]
BUCKET = "scalars"
PACKAGES = ("tensorboardX", "numpy", "numpy.libs", "packaging", "google.protobuf")
# Writes 40 steps, and 10 more once the bucket has the file `go`.
TRAINER = """
import os, pathlib, signal, sys, time
from tensorboardX import SummaryWriter

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
folder = os.environ["AIP_TENSORBOARD_LOG_DIR"].replace("gs://", "/gcs/")
train, validation = SummaryWriter(f"{folder}/train"), SummaryWriter(f"{folder}/validation")
for step in range(50):
    while step == 40 and not pathlib.Path("/gcs/scalars/go").exists():
        time.sleep(0.05)  # its thread may write an event after a call of flush
        train.flush()
        validation.flush()
    train.add_scalar("loss/total", 1 / (1 + step), step)
    validation.add_scalar("loss/total", 1.5 / (1 + step), step)
    train.add_scalar("rate", 0.01 if step else float("nan"), step)
train.close()
validation.close()
"""
TRIAL = f"""{REPORT}
from tensorboardX import SummaryWriter
with SummaryWriter(os.environ["AIP_TENSORBOARD_LOG_DIR"].replace("gs://", "/gcs/")) as writer:
    for step in range(5):
        writer.add_scalar("loss", x / (1 + step), step)
"""


@pytest.fixture(scope="module")
def packages(shared: RunningEmulator) -> None:
    """tensorboardX and what it needs, from this environment, in a bucket: containers install nothing."""
    for name in PACKAGES:
        folder = shared.data / "gcs" / BUCKET / "packages" / name.replace("google.", "google/")
        shutil.copytree(_locate(name), folder, ignore=shutil.ignore_patterns("tests", "__pycache__"))


def _locate(name: str) -> Path:
    if name == "numpy.libs":
        return _locate("numpy").with_name(name)
    found = importlib.util.find_spec(name)
    assert found and found.origin
    return Path(found.origin).parent


def writer_pool(script: str) -> Any:
    return pool(script, env=[{"name": "PYTHONPATH", "value": f"/gcs/{BUCKET}/packages"}])


def figure(page: Page, tag: str) -> Locator:
    return page.get_by_role("figure").filter(has=page.get_by_text(tag, exact=True))


def test_curves_follow_a_job_and_tell_values(shared: RunningEmulator, visit: Visit, packages: None) -> None:
    spec = {"baseOutputDirectory": {"outputUriPrefix": f"gs://{BUCKET}/job"}}
    name = shared.create(custom_job(writer_pool(TRAINER), name="writes scalars", **spec))
    page = visit(address(shared, name))
    loss = figure(page, "loss/total")
    train = loss.get_by_role("listitem").filter(has_text="train")
    expect(train).to_have_text(re.compile(r"train\s+0\.025\s+at step 39"))
    expect(loss.locator(".chart canvas")).to_have_count(1)
    page.evaluate("window.untouched = true")
    (shared.data / "gcs" / BUCKET / "go").touch()
    expect(train).to_have_text(re.compile(r"train\s+0\.02\s+at step 49"))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    expect(loss.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(r"validation: last 0.03 at step 49, lowest 0.03, highest 1.5")
    )
    area = loss.locator(".u-over")
    area.scroll_into_view_if_needed()

    def points_at_the_first() -> bool:
        area.hover(position={"x": 1, "y": 20})  # anew: the page of a job that ends grows, and moves what was pointed at
        return re.search(r"train\s+1\s+at step 0$", train.inner_text().strip()) is not None

    until(points_at_the_first)
    expect(loss.get_by_role("listitem").filter(has_text="validation")).to_have_text(re.compile(r"1\.5\s+at step 0"))
    expect(figure(page, "rate").get_by_text("1 value is NaN or infinite, the first at step 0.")).to_be_visible()
    assert page.evaluate("window.untouched")
    page.get_by_role("searchbox", name="Tags").fill("RATE")
    expect(loss).to_have_count(0)
    expect(figure(page, "rate").locator(".chart canvas")).to_have_count(1)
    assert_accessible(page)
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_each_trial_has_a_line(shared: RunningEmulator, visit: Visit, packages: None) -> None:
    trial = {
        "workerPoolSpecs": [writer_pool(TRIAL)],
        "baseOutputDirectory": {"outputUriPrefix": f"gs://{BUCKET}/study"},
    }
    name = shared.create(study(trials=3, trialJobSpec=trial), "hyperparameterTuningJobs")
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    page = visit(address(shared, name))
    loss = figure(page, "loss")
    expect(loss.get_by_text("3 lines")).to_be_visible()
    expect(loss.get_by_role("img")).to_have_attribute("aria-label", re.compile("trial-1: last .* trial-3: last "))
    area, heights = loss.locator(".u-over"), cycle(range(4, 240, 8))
    area.scroll_into_view_if_needed()

    def is_at_a_line() -> bool:
        area.hover(position={"x": 2, "y": next(heights)})
        return re.search(r"trial-\d: \S+\s+at step 0", loss.inner_text()) is not None

    until(is_at_a_line, "a reading of a line")
    expect(page.locator("tr.marked")).to_have_count(1)
    own = visit(address(shared, shared.trial_jobs(name)["2"]))
    expect(figure(own, "loss").get_by_role("listitem")).to_have_text(re.compile("at step 4"))


def test_damaged_files_are_lines_on_the_page(shared: RunningEmulator, visit: Visit) -> None:
    spec = {"baseOutputDirectory": {"outputUriPrefix": f"gs://{BUCKET}/damaged"}}
    name = shared.create(custom_job(pool("pass"), name="writes no scalars", **spec))
    shared.ended(name)
    page = visit(address(shared, name))
    expect(page.get_by_text(f"No TensorBoard event files in gs://{BUCKET}/damaged/logs/.")).to_be_visible()
    logs = shared.data / "gcs" / BUCKET / "damaged" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "events.out.tfevents.1").write_bytes(b"this is no event file")
    page.reload()
    expect(page.get_by_text("events.out.tfevents.1 is damaged at byte 0")).to_be_visible()
