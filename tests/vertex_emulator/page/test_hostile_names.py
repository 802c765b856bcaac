"""Names that other people and containers choose, in a real browser: they are text on its pages, and nothing else.

The fixture `visit` also sees to it that no page asks another host, or writes an error to its console.
"""

import json
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from shlex import quote as quote_for_shell
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, CDPSession, Page, expect

from tests.vertex_emulator.events import plain, records
from tests.vertex_emulator.jobs import custom_job as job_record
from tests.vertex_emulator.page.test_live_page import address
from tests.vertex_emulator.running import RunningEmulator, absent, custom_job, pool
from tests.vertex_emulator.test_studies import study
from vertex_emulator.database.records import SUCCEEDED
from vertex_emulator.page.routes import render_shell

Visit = Callable[..., Page]
IMG = "</script><img data-theirs src=//evil.example/x onerror=window.taken=1><svg data-theirs onload=window.taken=2>"
LINK = "\"'><a data-theirs href=javascript:window.taken=3>x</a>${window.taken=4}{{window.taken=5}}<%=7*7%>`"
FRAME = "<iframe data-theirs srcdoc='<script>parent.taken=6</script>'><style data-theirs>*{display:none}</style>"
CONTROL = "\u202egnorw\u2066 \x1b[31m\x1b]0;title\x07 &lt;b&gt; \x15\ufeff"
NAMES = [IMG, LINK, FRAME, CONTROL, "constructor", "__proto__"]
"""Of up to 128 characters, as a display name may have."""
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.blockedURI));
"""
PRINT = f"""
import json
for name in {NAMES!r}:
    print(name)
    print(json.dumps({{"message": name, name: name, "severity": name}}))
raise SystemExit({IMG!r})
"""
# Two steps that no browser can tell apart, and numbers at the ends of their range.
REPORT = """
import json, os, sys
names = json.loads(os.environ["NAMES"])
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "a") as file:
    for step, value in ((2**53, 1.7e308), (2**53 + 2, -1.7e308), (2**62, 5e-324)):
        for name in names:
            file.write(json.dumps({"timestamp": 1e300, "global_step": str(step), name: str(value)}) + "\\n")
"""


PROCESSOR_TIME = {"timeDomain": "threadTicks"}
"""Which time `processor_seconds` gives."""


def processor_seconds(session: CDPSession) -> float:
    """What a page has taken of the processor: the same however busy the machine is."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def as_file(name: str) -> str:
    return name.replace("/", "\u2215")


def inspect(page: Page) -> None:
    """What holds on every page, whatever it shows."""
    assert page.evaluate("[window.taken, window.violations]") == [None, []]
    assert page.locator("[data-theirs], iframe, main script, main style, main img").count() == 0
    assert page.locator("a[href]:not([href^='/']):not([href^='#'])").count() == 0


@pytest.fixture
def watched(visit: Visit) -> Visit:
    """Opens pages that keep what their policy has refused."""

    def open_(url: str) -> Page:
        page = visit("about:blank")
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.add_init_script(WATCH)
        page.goto(url)
        return page

    return open_


@pytest.fixture(scope="module")
def job(shared: RunningEmulator) -> str:
    """A job with hostile names, which has printed others and failed; in its folders are files with such names."""
    folder = as_file(IMG)
    body = custom_job(
        pool(PRINT, env=[{"name": f"HOSTILE_{i}", "value": name} for i, name in enumerate(NAMES)]),
        name=IMG.ljust(128, "!"),
        baseOutputDirectory={"outputUriPrefix": f"gs://hostile/{folder}"},
    )
    location = f"projects/{quote(as_file(LINK).replace(':', ''), safe='')}/locations/us-central1"
    name = str(shared.call("POST", f"v1/{location}/customJobs", body)["name"])
    for run in NAMES:
        logs = shared.data / "gcs" / "hostile" / folder / "logs" / as_file(run)
        logs.mkdir(parents=True, exist_ok=True)
        (logs / "tfevents.1").write_bytes(records(plain(tag, 1, 0.5) for tag in NAMES))
        (logs / f"tfevents.{as_file(run)}").write_bytes(b"no event file")
    shared.ended(name)
    return name


def test_names_of_a_job_are_text(shared: RunningEmulator, watched: Visit, job: str) -> None:
    page = watched(address(shared, job))
    expect(page.get_by_role("heading", name=IMG.ljust(128, "!"))).to_be_visible()
    assert page.title().startswith(IMG)
    log = page.get_by_role("log")
    for name in (IMG, LINK, FRAME):
        expect(log.get_by_text(name, exact=True)).to_have_count(2 if name == IMG else 1)
        expect(page.get_by_role("figure").filter(has_text=name)).to_have_count(1)
        expect(page.locator(".tree").get_by_text(name, exact=True)).to_have_count(1)
    expect(page.get_by_role("figure").first.get_by_role("listitem")).to_have_count(len(NAMES))
    expect(page.locator(".remark").first).to_contain_text("is damaged at byte 0")
    inspect(page)
    found = watched(f"{shared.url}/?text={quote(IMG, safe='')}")
    row = found.get_by_role("row").filter(has_text=IMG)
    expect(row).to_have_count(1)
    expect(row).to_contain_text(as_file(LINK).replace(":", ""))
    inspect(found)


def test_names_of_folders_are_text(shared: RunningEmulator, watched: Visit, window: BrowserContext, job: str) -> None:
    logs = f"gs://hostile/{as_file(IMG)}/logs"
    page = watched(f"{shared.url}/files?uri={quote(logs, safe='')}")
    for name in NAMES:
        expect(page.get_by_role("link", name=f"{as_file(name)}/", exact=True)).to_have_count(1)
    inspect(page)
    page.get_by_role("link", name=f"{as_file(FRAME)}/").click()
    expect(page.get_by_role("heading", name=as_file(FRAME))).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name=f"tfevents.{as_file(FRAME)}", exact=True).click()
    assert download.value.path().read_bytes() == b"no event file"
    inspect(page)
    other = window.new_page()  # not watched, as a browser tells of an answer that is no success
    other.add_init_script(WATCH)
    for uri in NAMES:
        other.goto(f"{shared.url}/files?uri={quote(uri, safe='')}")
        expect(other.get_by_role("alert")).to_contain_text("is not a Cloud Storage URI")
        inspect(other)
    other.close()


def test_names_of_metrics_and_parameters_are_text(shared: RunningEmulator, watched: Visit) -> None:
    metrics = [name.replace(" ", "/") for name in NAMES]
    parameters = [name.replace("=", "") for name in metrics]
    body = study(
        trials=2,
        displayName=FRAME,
        trialJobSpec={"workerPoolSpecs": [pool(REPORT, env=[{"name": "NAMES", "value": json.dumps(metrics)}])]},
    )
    spec: Any = body["studySpec"]
    spec["metrics"] = [{"metricId": name, "goal": "MAXIMIZE"} for name in metrics]
    spec["parameters"] = [
        {"parameterId": name, "categoricalValueSpec": {"values": [f"{name}1", f"{name}2"]}} for name in parameters
    ]
    name = shared.create(body, "hyperparameterTuningJobs")
    assert shared.ended(name)["state"] == "JOB_STATE_SUCCEEDED"
    page = watched(address(shared, name))
    for metric in metrics:
        page.get_by_role("combobox", name="Metric").select_option(metric)
        expect(page.locator("#curves-title")).to_have_text(f"{metric} over steps")
        expect(page.locator(".chart canvas")).to_have_count(1)
    page.get_by_role("button", name="Trial 1", exact=True).click()
    expect(page.locator(".details dt")).to_have_text([*metrics, *parameters])
    assert page.locator("svg path[d*=NaN], svg text").filter(has_text="native code").count() == 0
    inspect(page)


def test_metrics_named_as_methods_have_no_value(shared: RunningEmulator, watched: Visit) -> None:
    name = shared.create(study("raise SystemExit(1)", 2, displayName="no values"), "hyperparameterTuningJobs")
    job_id = name.rpartition("/")[2]
    shared.ended(name)
    view = shared.call("GET", f"vertex_emulator/page/jobs/hyperparameterTuningJobs/{job_id}")
    text = json.dumps(view).replace('"score"', '"constructor"').replace('"x"', '"toString"')
    page = watched("about:blank")
    page.route("**/page/jobs/hyperparameterTuningJobs/*", lambda route: route.fulfill(body=text))
    page.goto(address(shared, name))
    expect(page.get_by_role("columnheader", name="constructor")).to_be_visible()
    assert page.get_by_text("native code").count() == 0
    assert page.locator("svg path[d*=NaN]").count() == 0
    inspect(page)


def test_the_policy_stops_scripts_of_others(shared: RunningEmulator, window: BrowserContext) -> None:
    """What would happen if a name were taken for an element."""
    page = window.new_page()
    page.add_init_script(WATCH)
    for path in ("/", "/files", "/schedules"):
        page.goto(f"{shared.url}{path}")
        page.evaluate("""() => {
          const theirs = document.createElement("div");
          theirs.innerHTML = `<img src="http://127.0.0.1:1/x" onerror="window.taken=1">
            <a href="javascript:window.taken=2">x</a><form action="http://127.0.0.1:1/"><button>send</button></form>`;
          const inline = document.createElement("script");
          inline.text = "window.taken=3";
          document.body.append(theirs, inline);
          theirs.querySelector("a").click();
          theirs.querySelector("form").submit();
        }""")
        page.wait_for_function("() => window.violations.length >= 5")
        assert page.evaluate("window.taken") is None
        assert page.evaluate("fetch('http://127.0.0.1:1/').then(() => 'sent', (error) => error.name)") == "TypeError"
    page.close()


def test_an_address_leads_to_no_other_path(shared: RunningEmulator, visit: Visit) -> None:
    """A browser takes a backslash for a slash, so a decoded id could lead to a file that a container wrote."""
    forged = {"job": {"name": "forged", "displayName": "forged", "state": "JOB_STATE_FAILED"}, "kind": "CustomJob"}
    forged |= {
        "place": {"project": "p", "region": "r"},
        "outputs": [],
        "replicas": [],
        "log": {"job": "1", "tasks": []},
    }
    folder = shared.data / "gcs" / "forged"
    folder.mkdir()
    (folder / "job.json").write_text(json.dumps(forged))
    inner = "..\\..\\download?uri=gs:%2F%2Fforged%2Fjob.json"
    page = visit(f"{shared.url}/jobs/customJobs/{quote(inner, safe='')}")
    expect(page.get_by_role("heading", name="No such job")).to_be_visible()


PATHS = ["a b", "$(touch taken)", "`touch taken`", "'; touch taken; '", '"; touch taken; "', "a\\", "é*?[x]~!#&|<>"]
STUB = '#!/bin/sh\nfor each; do printf "%s\\n" "$each"; done > "$OUT"\n'


def run_in_shell(text: str, folder: Path) -> list[str]:
    """The arguments that a program gets which is run by a pasted line; nothing else may come of it."""
    folder.mkdir(exist_ok=True)
    stub = folder / "vertex-emulator"
    stub.write_text(STUB)
    stub.chmod(0o755)
    arguments = {"PATH": f"{folder}:/usr/bin:/bin", "OUT": str(folder / "out"), "HOME": str(folder)}
    done = subprocess.run(["sh"], input=f"{text}\n", cwd=folder, env=arguments, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path.name for path in folder.iterdir()} == {"vertex-emulator", "out"}
    return (folder / "out").read_text().splitlines()


def test_a_copied_command_has_the_shown_words(window: BrowserContext, tmp_path: Path) -> None:
    page = window.new_page()
    for name, (verb, state) in product(PATHS, (("shell", "JOB_STATE_RUNNING"), ("logs", SUCCEEDED))):
        spec = job_record().spec | {"displayName": name}
        page.set_content(render_shell(job_record(spec, state=state), "workerpool0-0", Path("/data") / name))
        copied = page.locator("code.command").inner_text()
        words = run_in_shell(copied, tmp_path / "bin")
        assert words == [verb, "42", "--task", "workerpool0-0", "--data", f"/data/{name}"]
    page.close()


def test_copied_paths_are_one_word(shared: RunningEmulator, window: BrowserContext, tmp_path: Path) -> None:
    window.grant_permissions(["clipboard-read", "clipboard-write"])
    page = window.new_page()
    for name in ["plain-1.0", *PATHS]:
        folder = shared.data / "gcs" / "copied" / name
        folder.mkdir(parents=True)
        page.goto(f"{shared.url}/files?uri={quote(f'gs://copied/{name}', safe='')}")
        page.get_by_role("button", name="Copy the folder's path").click()
        expect(page.get_by_text("Copied", exact=True).and_(page.locator("button *"))).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert run_in_shell(f"vertex-emulator {copied}", tmp_path / "bin") == [str(folder)]
        assert name != "plain-1.0" or copied == quote_for_shell(str(folder))
    for name in ("a\ntouch taken\n", "a\x15touch taken\x0d", "\x1b[201~touch taken"):
        (shared.data / "gcs" / "copied" / name).mkdir()
        page.goto(f"{shared.url}/files?uri={quote(f'gs://copied/{name}', safe='')}")
        expect(page.get_by_text("This folder is empty.")).to_be_visible()
        assert page.get_by_role("button", name="Copy the folder's path").count() == 0
    page.close()
    window.clear_permissions()


def test_names_that_turn_writing_turn_nothing_else(shared: RunningEmulator, visit: Visit, job: str) -> None:
    """A right-to-left override in a name ends with it: what follows in the same line stays readable."""
    page = visit(address(shared, job))
    expect(page.get_by_role("figure").first.get_by_role("listitem").first).to_be_visible()
    kept = page.evaluate("""() => [...document.querySelectorAll("a, code, strong, bdi, .key, .value")]
      .map((each) => getComputedStyle(each).unicodeBidi).every((each) => each === "isolate")""")
    assert kept
    legend = page.locator("ul.lines li").filter(has_text="gnorw").first
    assert legend.locator("bdi").inner_text().startswith("\u202egnorw")


def test_escapes_in_a_line_take_linear_work(shared: RunningEmulator, visit: Visit) -> None:
    """A line may have 256 kB, and escapes are left out: the square of that is a second for each line (measured)."""
    page = visit(shared.url)
    # A page whose scripts do not come at once loads itself again, which would end what runs in it.
    expect(page.get_by_role("navigation")).to_be_visible()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", PROCESSOR_TIME)
    for repeated in ("\x1b]", "\x1b[", "a\r", "\r\r"):
        before = processor_seconds(session)
        read = page.evaluate(
            """async (repeated) => {
              const entry = {
                timestamp: "2026-01-01T00:00:00Z", severity: "INFO", insertId: "1",
                textPayload: repeated.repeat(130_000), resource: { labels: { task_name: "workerpool0-0" } },
              };
              const { fetch } = window;
              window.fetch = async () => new Response(JSON.stringify({ entries: Array(8).fill(entry) }));
              const { lines } = await (await import("/assets/log-entries.js")).lastEntries("");
              window.fetch = fetch;
              return lines.length;
            }""",
            repeated,
        )
        assert read == 8
        assert 0 < processor_seconds(session) - before < 5, repeated


def test_close_steps_are_drawn(shared: RunningEmulator, visit: Visit) -> None:
    """The chart library adds one to 2^53 until it is more: 20 s and gigabytes of a browser (measured)."""
    for steps in ((2**53, 2**53 + 2), (-(2**63), 1024 - 2**63, 2**14 - 2**63), (0, 2**63 - 1)):
        job = absent("two steps")
        folder = f"steps-{abs(steps[1])}"
        job["jobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": f"gs://{folder}"}
        name = shared.create(job)
        shared.ended(name)
        logs = shared.data / "gcs" / folder / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        (logs / "tfevents.1").write_bytes(records(plain("loss", step, 0.5) for step in steps))
        page = visit("about:blank")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", PROCESSOR_TIME)
        page.goto(address(shared, name))
        expect(page.locator(".chart canvas")).to_have_count(1)
        assert 0 < processor_seconds(session) < 2, steps


def test_long_tags_fit_into_a_request(shared: RunningEmulator, visit: Visit) -> None:
    """A server takes 16 kB of a request's head at least; tags of 250 bytes have 750 letters in an address."""
    job = absent("long tags")
    job["jobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": "gs://long-tags"}
    name = shared.create(job)
    shared.ended(name)
    logs = shared.data / "gcs" / "long-tags" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    tags = [f"{group}/{number:04d}{chr(0x1F600) * 61}" for group in range(6) for number in range(12)]
    (logs / "tfevents.1").write_bytes(records(plain(tag, 1, 0.5) for tag in tags))
    page = visit("about:blank")
    lengths: list[int] = []
    page.on("request", lambda request: lengths.append(len(request.url)))
    page.goto(address(shared, name))
    for group in range(1, 6):
        page.locator("details.group summary").nth(group).click()
        expect(page.locator("details.group[open]")).to_have_count(group + 1)
    expect(page.get_by_role("figure")).to_have_count(16)
    assert max(lengths) < 16_000


@pytest.mark.parametrize("region", ["us#x", "us?x", "..\\..\\..\\vertex_emulator", "%2e%2e", "us$(id)"])
def test_buttons_ask_for_their_job(shared: RunningEmulator, visit: Visit, region: str) -> None:
    path = f"v1/projects/p/locations/{quote(region, safe='')}/customJobs"
    name = shared.call("POST", path, absent("in a region"))["name"]
    assert f"/locations/{region}/" in name
    shared.ended(quote(name))
    page = visit(address(shared, name))
    page.get_by_role("button", name="Delete job").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete job").click()
    page.wait_for_url(f"{shared.url}/")
    shared.call("GET", f"v1/{quote(name)}", expect=404)


def test_buttons_ask_for_their_schedule(shared: RunningEmulator, visit: Visit) -> None:
    path = f"vertex_emulator/projects/p/locations/{quote('us#x', safe='')}/schedules/local-hostile"
    jobs = [{"name": "train", "collection": "customJobs", "body": absent("scheduled")}]
    shared.call("PUT", path, {"cron": "0 2 1 1 *", "jobs": jobs, "paused": True})
    page = visit(f"{shared.url}/schedules")
    page.get_by_role("button", name="resume local-hostile").click()
    expect(page.get_by_role("button", name="pause local-hostile")).to_be_visible()
    assert not shared.call("GET", path)["paused"]
    shared.call("DELETE", path)
