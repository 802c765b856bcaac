"""The page in a browser, on jobs that really run."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.vertex_emulator.page.axe import assert_accessible
from tests.vertex_emulator.running import RunningEmulator, absent, custom_job, labelled, pool, until

Visit = Callable[..., Page]
STOPPABLE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as process 1 it would not end otherwise
"""
LASTING = f"{STOPPABLE}time.sleep(600)"
CHATTY = f"""{STOPPABLE}
print("<script>document.title='taken'</script><b>bold</b>", flush=True)
for i in range(10_000):
    print("epoch", i, flush=True)
    time.sleep(0.2)
"""


def address(emulator: RunningEmulator, name: str) -> str:
    return f"{emulator.url}/jobs/{'/'.join(name.split('/')[-2:])}"


def test_new_jobs_and_states_appear_without_reload(shared: RunningEmulator, visit: Visit) -> None:
    page = visit(f"{shared.url}/?text=appearing")
    expect(page.get_by_text("No job matches the search.")).to_be_visible()
    page.evaluate("window.untouched = true")
    name = shared.create(absent("appearing job"))
    row = page.get_by_role("row", name="appearing job")
    expect(row).to_be_visible()
    shared.ended(name)
    expect(row.get_by_text("Failed")).to_be_visible()
    assert page.evaluate("window.untouched")


def test_an_empty_list_says_what_to_run(own: RunningEmulator, visit: Visit) -> None:
    page = visit(f"{own.url}/")
    expect(page.get_by_text("No jobs yet")).to_be_visible()
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    commands = page.get_by_role("listitem").filter(has=page.locator("code"))
    expect(commands).to_have_count(3)
    for command in commands.all():
        command.get_by_role("button", name="Copy").click()
        assert page.evaluate("window.copied") == command.locator("code").inner_text()
    assert_accessible(page)


def test_address_keeps_search_and_filter_of_list(shared: RunningEmulator, visit: Visit) -> None:
    for i in range(2):
        shared.ended(shared.create(absent(f"needle {i}")))
    page = visit(shared.url)
    page.get_by_role("searchbox").fill("NEEDLE 1")
    expect(page.get_by_role("row", name="needle 1")).to_be_visible()
    expect(page.get_by_role("row", name="needle 0")).to_have_count(0)
    page.get_by_role("radio", name="Active").check(force=True)
    expect(page.get_by_text("No job matches the search.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("No job matches the search.")).to_be_visible()
    page.get_by_role("button", name="Show all jobs").click()
    expect(page.get_by_role("row", name="needle 0")).to_be_visible()


def test_deleting_leads_to_the_list(shared: RunningEmulator, visit: Visit) -> None:
    name = shared.create(absent("to be deleted"))
    shared.ended(name)
    page = visit(shared.url)
    row = page.get_by_role("row", name="to be deleted")
    expect(row).to_be_visible()
    other = visit(address(shared, name))
    other.get_by_role("button", name="Delete job").click()
    other.get_by_role("dialog").get_by_role("button", name="Delete job").click()
    other.wait_for_url(f"{shared.url}/")
    expect(row).to_have_count(0)
    shared.call("GET", f"v1/{name}", expect=404)


def test_log_lines_appear_live_as_plain_text(shared: RunningEmulator, visit: Visit) -> None:
    name = shared.create(custom_job(pool(CHATTY), name="chatty <b>job</b>"))
    page = visit(address(shared, name))
    log = page.get_by_role("log")
    expect(log.get_by_text("<script>document.title='taken'</script><b>bold</b>")).to_be_visible()
    seen = log.locator(".line").count()
    expect(log.locator(".line").nth(seen + 3)).to_be_visible()
    assert page.title().startswith("chatty <b>job</b>")
    assert page.locator("main b, main script").count() == 0
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("combobox", name="Replica").select_option("service")
    expect(log.get_by_text("Waiting for job to be provisioned.")).to_be_visible()
    expect(log.get_by_text("epoch")).to_have_count(0)
    shared.call("POST", f"v1/{name}:cancel")
    shared.ended(name)


def test_a_failure_has_no_link_to_the_console(shared: RunningEmulator, visit: Visit) -> None:
    name = shared.create(custom_job(pool("raise SystemExit(3)"), name="failing"))
    message = shared.ended(name)["error"]["message"]
    reason, link, _ = message.partition(" To find out more about why your job exited")
    assert reason and link
    page = visit(address(shared, name))
    expect(page.locator(".notice.failed .text")).to_have_text(reason)
    line = page.get_by_role("log").get_by_text("exited with a non-zero status of 3")
    expect(line).to_be_visible()
    assert "console.cloud" not in line.inner_text()


def test_cancel_button_asks_and_then_ends_container(shared: RunningEmulator, visit: Visit) -> None:
    name = shared.create(custom_job(pool(LASTING), name="to be cancelled"))
    shared.in_state(name, "JOB_STATE_RUNNING")
    page = visit(address(shared, name))
    page.get_by_role("button", name="Cancel job").click()
    dialog = page.get_by_role("dialog", name="Cancel this job?")
    dialog.get_by_role("button", name="Let it run").click()
    expect(dialog).to_be_hidden()
    assert shared.get(name)["state"] == "JOB_STATE_RUNNING"
    page.get_by_role("button", name="Cancel job").press("Enter")
    dialog.get_by_role("button", name="Cancel job").press("Enter")
    expect(page.locator(".headline .badge")).to_have_text(re.compile("Cancelled"))
    expect(page.get_by_role("status").filter(has_text="The job is now cancelled.")).to_have_count(1)
    assert shared.get(name)["state"] == "JOB_STATE_CANCELLED"
    until(lambda: not labelled(name), "the removal of its container")


def test_page_reconnects_after_emulator_restart(own_on_reserved_port: RunningEmulator, visit: Visit) -> None:
    own = own_on_reserved_port
    name = own.create(custom_job(pool(LASTING), name="outlives the emulator"))
    own.in_state(name, "JOB_STATE_RUNNING")
    page = visit(address(own, name))
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    own.end()
    expect(page.get_by_text("Reconnecting…")).to_be_visible()
    own.start()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    own.call("POST", f"v1/{name}:cancel")
    expect(page.locator(".headline .badge")).to_have_text(re.compile("Cancelled"))


def test_outputs_link_to_files_that_are_downloaded(shared: RunningEmulator, visit: Visit) -> None:
    script = "import os; open(os.environ['AIP_MODEL_DIR'].replace('gs://', '/gcs/') + 'x.html', 'w').write('<script>')"
    script = f"import os; os.makedirs('/gcs/page-tests/out/model', exist_ok=True); {script}"
    spec = {"baseOutputDirectory": {"outputUriPrefix": "gs://page-tests/out"}}
    name = shared.create(custom_job(pool(script), name="writes a page", **spec))
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    page = visit(address(shared, name))
    page.get_by_role("link", name="gs://page-tests/out/model/").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="x.html").click()
    assert download.value.path().read_text() == "<script>"


MEASURES = """
import json, os, sys
folder = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/")
os.makedirs(folder, exist_ok=True)
json.dump({"accuracy": float(sys.argv[1]), "train": {"loss": 0.25}}, open(f"{folder}/metrics.json", "w"))
"""


def test_runs_of_a_name_are_compared(shared: RunningEmulator, visit: Visit) -> None:
    names = []
    for accuracy in ("0.91", "0.954321"):
        spec = {"baseOutputDirectory": {"outputUriPrefix": f"gs://runs/{accuracy}"}}
        measured = pool(MEASURES)
        measured["containerSpec"]["command"].append(accuracy)
        names.append(shared.create(custom_job(measured, name="measures", **spec)))
        assert shared.ended(names[-1])["state"] == "JOB_STATE_SUCCEEDED"
    page = visit(address(shared, names[1]))
    expect(page.get_by_text("accuracy 0.9543")).to_be_visible()
    rows = page.get_by_label("Table of runs").get_by_role("row")
    expect(rows).to_have_text(
        [re.compile("accuracy.*train.loss"), re.compile("this one.*0.9543.*0.25"), re.compile("0.91.*0.25")]
    )
    assert_accessible(page)
    rows.nth(2).get_by_role("link").click()
    expect(page).to_have_url(address(shared, names[0]))
    expect(page.get_by_text("accuracy 0.91")).to_be_visible()
