"""A study's table and plots in a browser, and the page for everyone: keyboard, screen readers, schemes, widths."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.vertex_emulator.page.axe import assert_accessible
from tests.vertex_emulator.page.test_keyboard import press
from tests.vertex_emulator.running import RunningEmulator, custom_job, pool, until
from tests.vertex_emulator.test_studies import study

Visit = Callable[..., Page]
MIDDLE = """path => {
  const { x, y } = path.getPointAtLength(path.getTotalLength() / 2).matrixTransform(path.getScreenCTM());
  return [x, y];
}"""
KEEP_TEXTS_OF_CANVASES = """
window.texts = [];
const draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
  window.texts.push({ text, isBelow: this.textBaseline === "top" });
  return draw.call(this, text, x, y, ...rest);
};
"""


@pytest.fixture(scope="module")
def job(shared: RunningEmulator) -> Any:
    """A study that has run: four trials, three measurements each."""
    name = shared.create(study(displayName="a study for the page"), "hyperparameterTuningJobs")
    found = shared.ended(name)
    assert found["state"] == "JOB_STATE_SUCCEEDED", found
    return found


@pytest.fixture(scope="module")
def failure(shared: RunningEmulator) -> str:
    """The page of a job that has failed and whose names are long."""
    body = custom_job(pool("raise SystemExit('no')"), name="n" * 128, labels={"k" * 60: "v" * 60})
    name = shared.create(body)
    shared.ended(name)
    return f"{shared.url}/jobs/customJobs/{name.rpartition('/')[2]}"


def address(emulator: RunningEmulator, job: Any) -> str:
    return f"{emulator.url}/jobs/hyperparameterTuningJobs/{job['name'].rpartition('/')[2]}"


def scores(job: Any) -> dict[str, float]:
    return {trial["id"]: trial["finalMeasurement"]["metrics"][0]["value"] for trial in job["trials"]}


def order(page: Page) -> list[str]:
    return [row.get_attribute("data-trial") or "" for row in page.locator("tbody tr[data-trial]").all()]


def test_the_keyboard_sorts_the_trials_either_way(shared: RunningEmulator, visit: Visit, job: Any) -> None:
    page = visit(address(shared, job))
    heading = page.get_by_role("columnheader", name="score")
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    ascending = sorted(scores(job), key=scores(job).__getitem__)
    assert order(page) == ascending
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert order(page) == ascending[::-1]


def test_the_best_trial_is_marked(shared: RunningEmulator, visit: Visit, job: Any) -> None:
    best = max(scores(job), key=scores(job).__getitem__)
    page = visit(address(shared, job))
    expect(page.get_by_role("heading", name=f"Best trial: {best}")).to_be_visible()
    plot = page.get_by_role("img", name="Parallel coordinates of 4 trials")
    expect(plot).to_have_attribute("aria-label", re.compile(f"Best: trial {best}, x "))
    assert [mark.get_attribute("data-trial") for mark in plot.locator("g.best").all()] == [best]
    assert plot.locator("g.best text.star").count() == 2  # the parameter's axis and the metric's
    assert plot.locator("path.line").count() == 4
    row = page.locator(f'tr[data-trial="{best}"]')
    expect(row.get_by_role("img", name="best")).to_be_visible()
    assert page.get_by_role("img", name="best", exact=True).count() == 1


def test_focus_and_hover_mark_a_trial(shared: RunningEmulator, visit: Visit, job: Any) -> None:
    page = visit(address(shared, job))
    page.get_by_role("button", name="Trial 3", exact=True).focus()
    expect(page.locator("svg g.marked")).to_have_attribute("data-trial", "3")
    page.get_by_role("button", name="Trial 2", exact=True).press("Enter")
    expect(page.get_by_role("button", name="Trial 2", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("heading", name="Trial 2")).to_be_visible()
    expect(page.get_by_role("heading", name="Trial 2")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Trial 2")).to_have_count(0)
    expect(page.get_by_role("button", name="Trial 2", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_text("3 measurements").click()
    expect(page.get_by_role("region", name="Measurements of trial 2").get_by_role("row")).to_have_count(4)
    line = page.locator('svg g[data-trial="4"] path.touch')
    row = page.locator('tr[data-trial="4"]')

    def hovered() -> bool:
        line.scroll_into_view_if_needed()  # again, as charts that are drawn later move the plot
        page.mouse.move(*line.evaluate(MIDDLE))
        return "marked" in (row.get_attribute("class") or "")

    until(hovered, "the mark of trial 4")


def test_later_curves_keep_mark_of_focused_trial(shared: RunningEmulator, visit: Visit, job: Any) -> None:
    page = visit(address(shared, job))
    held: list[Route] = []
    page.route("**/uPlot*.js", lambda route: held.append(route))
    page.reload()
    page.get_by_role("button", name="Trial 3", exact=True).focus()
    expect(page.locator("svg g.marked")).to_have_attribute("data-trial", "3")
    expect(page.locator(".chart canvas")).to_have_count(0)
    until(lambda: page.evaluate("true") and held, "the request for the chart library")  # a call runs handlers of routes
    held.pop().continue_()
    expect(page.locator(".chart canvas")).to_have_count(1)
    expect(page.locator("svg g.marked")).to_have_attribute("data-trial", "3")


def test_curves_have_three_axes(shared: RunningEmulator, visit: Visit, job: Any) -> None:
    page = visit(address(shared, job))
    for over in ("steps", "seconds", "trials"):
        page.get_by_role("combobox", name="Over").select_option(over)
        expect(page.get_by_role("heading", name=f"score over {over}")).to_be_visible()
        expect(page.locator(".chart canvas")).to_have_count(1)


def test_steps_and_trials_have_no_fractions(shared: RunningEmulator, visit: Visit, job: Any) -> None:
    page = visit(address(shared, job))
    page.add_init_script(KEEP_TEXTS_OF_CANVASES)
    page.reload()
    for over in ("trials", "steps"):
        page.get_by_role("combobox", name="Over").select_option(over)
        expect(page.get_by_role("heading", name=f"score over {over}")).to_be_visible()
        page.evaluate("window.texts = []")
        page.emulate_media(color_scheme="dark" if over == "trials" else "light")  # draws it anew
        page.wait_for_function("() => window.texts.length > 5")
        texts = page.evaluate("() => window.texts.filter((text) => text.isBelow).map((text) => text.text)")
        assert texts and all(text.isdecimal() for text in texts), (over, texts)


def test_trial_links_to_its_job_and_back(shared: RunningEmulator, visit: Visit, job: Any) -> None:
    page = visit(address(shared, job))
    page.get_by_role("button", name="Trial 1", exact=True).click()
    page.get_by_role("link", name="Replicas, outputs and log").click()
    expect(page.get_by_role("log").get_by_text("gs://tuning/out/1/model/")).to_be_visible()
    expect(page.get_by_role("log").get_by_text("gs://tuning/out/2/model/")).to_have_count(0)
    assert page.get_by_role("button", name="Delete job").count() == 0
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Tuning job").click()
    expect(page.get_by_role("heading", name="a study for the page")).to_be_visible()


def test_pages_are_accessible_and_fit_every_window(
    shared: RunningEmulator, visit: Visit, job: Any, failure: str
) -> None:
    trial = f"/jobs/customJobs/{shared.trial_jobs(job['name'])['1'].rpartition('/')[2]}"
    (shared.data / "gcs" / "accessible" / "folder").mkdir(parents=True)
    (shared.data / "gcs" / "accessible" / "file").touch()
    others = ("/files", "/files?uri=gs://accessible", "/jobs/customJobs/1", trial, f"{trial}/shell/workerpool0-0")
    for url in (shared.url, address(shared, job), failure, *(f"{shared.url}{other}" for other in others)):
        page = visit(url)
        expect(page.locator("h1")).to_be_visible()
        if url == address(shared, job):
            page.get_by_role("button", name="Trial 2", exact=True).click()
        if url == failure:
            expect(page.get_by_role("log").get_by_text("Job failed.")).to_be_visible()
        for width in (360, 1280, 1600):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (url, width)
            if width != 1600:
                assert_accessible(page)


def test_trials_are_blocks_in_a_narrow_window(shared: RunningEmulator, visit: Visit, job: Any) -> None:
    page = visit(address(shared, job))
    page.set_viewport_size({"width": 390, "height": 844})
    table = page.get_by_role("region", name="Table of trials")
    expect(table).to_be_visible()
    assert table.evaluate("(each) => each.scrollWidth - each.clientWidth") == 0
    cells = table.locator("tr[data-trial='1'] td")
    labels = cells.evaluate_all("(all) => all.map((each) => getComputedStyle(each, '::before').content)")
    assert labels == ['"State"', '"score"', '"x"', '"Duration"']
    boxes = [cell.bounding_box() for cell in cells.all()]
    assert all(box and other and other["y"] >= box["y"] + box["height"] for box, other in pairwise(boxes))
    table.get_by_role("button", name="score").focus()
    page.keyboard.press("Enter")
    press(page, "Enter")
    best_first = sorted(scores(job), key=scores(job).__getitem__)[::-1]
    assert order(page) == best_first
    assert [press(page, "Tab") for _ in range(3)] == ["x", "Duration", f"Trial {best_first[0]}"]
    assert_accessible(page)


def test_skip_link_is_first_and_skips_header(shared: RunningEmulator, visit: Visit) -> None:
    page = visit(shared.url)
    expect(page.locator("h1")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox")).to_be_focused()
