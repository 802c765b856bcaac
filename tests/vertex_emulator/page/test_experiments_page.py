"""The page of experiments in a browser: runs in a table that sorts, a comparison, and curves."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.vertex_emulator.page.axe import assert_accessible
from tests.vertex_emulator.running import RunningEmulator

LOCATION = "projects/pages/locations/us-central1"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def experiment(shared: RunningEmulator) -> str:
    """An experiment of three runs, of which two have a curve."""

    def call(path: str, body: Any) -> Any:
        return shared.call("POST", f"v1/{path}", body)

    store = call(f"{LOCATION}/metadataStores?metadataStoreId=default", {})["response"]["name"]
    board = call(f"{LOCATION}/tensorboards", {"displayName": "board"})["response"]["name"]
    call(f"{board}/experiments?tensorboardExperimentId=tuning", {})
    fields = {"schemaTitle": "system.Experiment", "description": HOSTILE}
    made = call(f"{store}/contexts?contextId=tuning", fields)["name"]
    for number, rate in enumerate((0.1, 0.01, 0.001)):
        name = f"run-{number}"
        params, metrics = {"rate": rate, "constructor": HOSTILE}, {"accuracy": (0.5, 0.75, 0.25)[number]}
        metadata = {"_params": params, "_metrics": metrics, "_state": "COMPLETE"}
        run = {"displayName": name, "schemaTitle": "system.ExperimentRun", "metadata": metadata}
        context = call(f"{store}/contexts?contextId=tuning-{name}", run)["name"]
        call(f"{made}:addContextChildren", {"childContexts": [context]})
        if number:
            curve = call(f"{board}/experiments/tuning/runs?tensorboardRunId={name}", {"displayName": name})["name"]
            fields = {"displayName": "loss", "valueType": "SCALAR"}
            series = call(f"{curve}/timeSeries", fields)["name"].rpartition("/")[2]
            values = [{"step": str(step), "scalar": {"value": rate / (step + 1)}} for step in range(3)]
            data = {"tensorboardTimeSeriesId": series, "valueType": "SCALAR", "values": values}
            call(f"{curve}:write", {"timeSeriesData": [data]})
            call(f"{store}/artifacts?artifactId=tuning-{name}-tb-run", {"metadata": {"resourceName": curve}})
    return str(made)


def order(page: Page) -> list[str]:
    return [row.get_attribute("data-run") or "" for row in page.locator("tbody tr[data-run]").all()]


def test_runs_are_sorted_compared_and_drawn(
    shared: RunningEmulator, visit: Callable[..., Page], experiment: str
) -> None:
    page = visit(f"{shared.url}/experiments")
    page.get_by_role("link", name="tuning", exact=True).click()
    expect(page.get_by_role("heading", name="tuning", exact=True)).to_be_visible()
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    runs = [f"tuning-run-{number}" for number in range(3)]
    expect(page.locator("tbody tr[data-run]")).to_have_count(3)
    assert order(page) == runs[::-1]  # the newest first
    heading = page.get_by_role("region", name="Table of runs").get_by_role("columnheader", name="accuracy")
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert order(page) == [runs[2], runs[0], runs[1]]

    expect(page.get_by_role("heading", name="Time series of the latest runs")).to_be_visible()
    expect(page.locator(".chart canvas")).to_have_count(1)
    for name in ("run-0", "run-1"):
        page.get_by_role("button", name=name, exact=True).press("Enter")
    comparison = page.get_by_role("region", name="Comparison", exact=True)
    rows = [row.inner_text().split() for row in comparison.locator("tbody tr").all()]
    assert [(row[0], row[-1]) for row in rows] == [
        *((name, "yes") for name in ("rate", "accuracy", "loss")),
        ("constructor", "no"),
    ]
    expect(page.get_by_role("heading", name="Time series of the picked runs")).to_be_visible()
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert_accessible(page)

    metadata = {"_params": {"rate": 1.0}, "_state": "RUNNING"}
    shared.call("PATCH", f"v1/{experiment}-run-0", {"metadata": metadata})  # a program goes on
    row = page.locator('tr[data-run="tuning-run-0"]')
    expect(row.get_by_text("Running")).to_be_visible()
    page.get_by_role("searchbox").fill("RUN-2")
    expect(page.locator("tbody tr[data-run]")).to_have_count(1)
    page.goto(f"{shared.url}/experiments/{experiment}-missing")
    expect(page.get_by_role("alert")).to_contain_text("There is no experiment projects/")
