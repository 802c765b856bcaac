"""The page without a mouse: each stop of the Tab key is seen, and all that a visit needs can be reached."""

from shlex import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.vertex_emulator.page.axe import assert_accessible
from tests.vertex_emulator.page.test_live_page import Visit, address
from tests.vertex_emulator.running import RunningEmulator, absent

MOST_STOPS = 60
# The ring of a radio button is drawn around its label.
SHOWN = """() => {
  const own = document.activeElement;
  const box = own.getBoundingClientRect();
  const isRinged = (each) => {
    const style = each && getComputedStyle(each);
    return style && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  };
  return {
    name: own.getAttribute("aria-label") ?? (own.textContent.trim() || own.type),
    isSeen: box.width > 0 && box.bottom > 0 && box.top < innerHeight,
    isRinged: isRinged(own) || isRinged(own.nextElementSibling),
  };
}"""


def press(page: Page, key: str) -> str:
    """Go to the next stop; its name."""
    page.keyboard.press(key)
    stop = page.evaluate(SHOWN)
    assert stop["isSeen"] and stop["isRinged"], stop
    return str(stop["name"])


def go_to(page: Page, place: Locator, key: str = "Tab") -> None:
    for _ in range(MOST_STOPS):
        press(page, key)
        if place.evaluate("(element) => element === document.activeElement"):
            return
    raise AssertionError(f"{key} does not lead to {place}")


@pytest.fixture(scope="module")
def job(shared: RunningEmulator) -> str:
    """A job that has failed."""
    name = shared.create(absent("reached by keyboard"))
    shared.ended(name)
    return name


def test_stops_come_in_reading_order(shared: RunningEmulator, visit: Visit, job: str) -> None:
    page = visit(f"{shared.url}/?text={job.rpartition('/')[2]}")
    expect(page.get_by_role("row", name="reached by keyboard")).to_be_visible()
    names = [press(page, "Tab") for _ in range(9)]
    views = ["Jobs", "Experiments", "Schedules", "Files"]
    assert names == ["Skip to content", "Vertex training", *views, "search", "radio", "reached by keyboard"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Active")).to_be_checked()
    expect(page.get_by_text("No job matches the search.")).to_be_visible()


def test_slash_searches(shared: RunningEmulator, visit: Visit, job: str) -> None:
    page = visit(shared.url)
    search = page.get_by_role("searchbox", name="Search by name or id")
    expect(search).to_be_visible()
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.type("customJobs/")
    expect(search).to_have_value("customJobs/")
    page.keyboard.press("Escape")
    expect(search).to_have_value("")
    expect(page).to_have_url(f"{shared.url}/")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_whole_visit_needs_no_mouse(shared: RunningEmulator, visit: Visit, job: str, scheme: str) -> None:
    page = visit(shared.url)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    expect(page.locator("h1")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(job.rpartition("/")[2])
    expect(page.get_by_role("row")).to_have_count(2)
    go_to(page, page.get_by_role("link", name="reached by keyboard"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(address(shared, job))
    expect(page.get_by_role("log").get_by_text("Job failed.")).to_be_visible()

    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    go_to(page, page.get_by_role("button", name="Delete job"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Delete this job?")
    expect(dialog.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Delete job")).to_be_focused()

    go_to(page, page.get_by_role("button", name="Copy the command: Print the log"))
    page.keyboard.press("Space")
    command = f"vertex-emulator logs {job.rpartition('/')[2]} --follow --data {quote(str(shared.data))}"
    assert page.evaluate("window.copied") == command
    go_to(page, page.get_by_role("log"))
    go_to(page, page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Jobs"), "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{shared.url}/")


def test_an_open_question_is_accessible(shared: RunningEmulator, visit: Visit, job: str) -> None:
    page = visit(address(shared, job))
    page.get_by_role("button", name="Delete job").press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    assert_accessible(page)
