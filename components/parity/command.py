"""The command `vertex-training parity`: asks Vertex AI and the emulator the same, and reports what differs."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vertex_api.estimates.cost import show_nearest
from vertex_api.estimates.prices import VARIABLE, ZERO, Money, PricesUnusable, filed_prices
from vertex_api.validation import formats

from ..review.pieces import count_of
from ..settings.cloud import check_place
from . import probes, report
from .probes import Probe
from .report import Finding
from .side import Answer, Journal, ParityFailed, Run, Side, masked

JOURNAL = Path(".parity-journal")
IMAGE = "python:3.11-slim-bookworm"
"""What probes run, of Docker Hub: an image may be there or in Artifact Registry (page "Create a custom job")."""
_AT_ONCE = 8
_START_SECONDS = 60
_LEFT = "`vertex-training parity --clean` removes what is left"
_SERVICE_PAUSE, _EMULATOR_PAUSE = 5.0, 0.3
"""Seconds between polls."""


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    project: str
    region: str
    budget: float
    bucket: str
    only: Sequence[str]
    endpoint: str
    against: Path | None
    capture: Path | None
    json: Path | None
    yes: bool


def show(only: Sequence[str]) -> int:
    """Print the probes. Returns the exit code."""
    for probe in probes.load(only or ["*"]):
        print(f"{probe.name}: {probe.title}{' (only if it is named)' if probe.is_opt_in else ''}")  # noqa: T201
    return 0


def clean() -> int:
    """Remove what runs that were killed have left. Returns the exit code: 1 if something may still be there."""
    journal = Journal(JOURNAL)
    try:
        with journal.locked():
            runs = journal.runs()
            cleaned = [_end(run, journal) for run in runs]
    except ParityFailed as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 1
    found = [f"{run.id}: nothing is left" for run, is_clean in zip(runs, cleaned, strict=True) if is_clean]
    print("\n".join(found if runs else [f"{JOURNAL}: is not in this folder; no run has left anything from here"]))  # noqa: T201
    return 0 if all(cleaned) else 1


def parity(options: Options) -> int:
    """Run the probes and write the report to standard output.

    Returns the exit code: 0, 1 if something differs or is left, 2 if nothing was asked. Raises OSError for files that
    cannot be written, before anything is asked.
    """
    try:
        chosen = _chosen(options)
        if not options.against:
            _agree(chosen, options)
        if options.capture:
            options.capture.mkdir(parents=True, exist_ok=True)
        if options.json:
            options.json.touch()
        findings: dict[str, Finding] = {}
        try:
            is_clean = _find(chosen, options, findings)
        finally:
            # A run that is cut has asked something all the same.
            whole = [findings.get(each.name, Finding(each, failure=report.CUT)) for each in chosen]
            if findings:
                sys.stdout.write(report.to_markdown(whole))
                if options.json:
                    options.json.write_text(report.to_json(whole), encoding="utf-8")
    except ParityFailed as error:
        sys.stderr.write(f"vertex-training: {error}\n")
        return 2
    return 0 if is_clean and not any(each.differences or each.failure for each in whole) else 1


def _chosen(options: Options) -> list[Probe]:
    """Return the probes that the options name. Raises ParityFailed for options that cannot be meant."""
    for (key, *_), message in check_place({"project": options.project, "region": options.region}):
        raise ParityFailed(f"--{key}: {message}")
    if options.bucket and (not formats.STORAGE_URI.matches(f"gs://{options.bucket}") or "/" in options.bucket):
        raise ParityFailed(f'--bucket: "{options.bucket}" is not the name of a bucket, such as my-bucket')
    if options.against and not options.against.is_dir():
        raise ParityFailed(f"--against: {options.against} is no folder of --capture")
    chosen = probes.load(options.only)
    if not chosen:
        raise ParityFailed(f"--only: no probe is named {' or '.join(options.only)}; --list shows them")
    return chosen


def _agree(chosen: Sequence[Probe], options: Options) -> None:
    """Show what a run can cost at most, and go on if that is within the budget and agreed to. Raises ParityFailed."""
    try:
        prices = filed_prices()
    except PricesUnusable as error:
        raise ParityFailed(f"{VARIABLE}: {error}") from error
    total = sum((probe.cost(options.region, prices) for probe in chosen), ZERO)
    lines = probes.plan_lines(chosen, options.region, prices)
    nearest = show_nearest(cost for probe in chosen for cost in probe.costs(options.region, prices))
    heading = (
        f"{count_of(len(chosen), 'probe')} in {options.project} in {options.region}, at most {total} by list price"
        f"{f' ({nearest})' if nearest else ''}:"
    )
    sys.stderr.write("\n".join([heading, *lines]) + "\n")
    if unpriced := sorted({name for probe in chosen for name in probe.unpriced(options.region, prices)}):
        what = ", ".join(unpriced)
        raise ParityFailed(f"--region: {what} has no price on file in {options.region}; choose another region")
    if not total <= options.budget:  # nan too
        raise ParityFailed(f"--budget: {Money(options.budget)} is less than {total}; raise it, or choose with --only")
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise ParityFailed("nothing is run before somebody agrees; give --yes")
    sys.stderr.write("Run them? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ParityFailed("nothing was run")


def _find(chosen: Sequence[Probe], options: Options, findings: dict[str, Finding]) -> bool:
    """Ask, put what is found into `findings`, by probe, and remove all that was made.

    Returns whether nothing is left. Raises ParityFailed.
    """
    id_ = f"parity-{secrets.token_hex(4)}"
    folder = Path(tempfile.gettempdir(), f"vertex-training-{id_}")
    bucket = options.bucket or f"{id_}-{secrets.token_hex(4)}"
    url = None if options.against else options.endpoint
    run = Run(id_, options.project, options.region, url, bucket, not options.bucket, str(folder))
    service = None if url is None else _service(run)
    journal = Journal(JOURNAL)
    with journal.locked():
        if service:
            service.check()
        journal.add(run)
        try:
            folder.mkdir(mode=0o700)
            _ask(chosen, run, service, options, findings)
        finally:
            sys.stderr.write("Removing what was made\n")
            is_clean = _end(run, journal)
        return is_clean


def _ask(
    chosen: Sequence[Probe], run: Run, service: Side | None, options: Options, findings: dict[str, Finding]
) -> None:
    """Ask both sides, some probes at a time, with a line for each that is done. Raises ParityFailed."""
    with _emulator(run) as emulator:
        emulator.make_bucket()
        if service:
            service.make_bucket()

        def ask(probe: Probe) -> None:
            try:
                theirs = _theirs(probe)
                if theirs is None:
                    findings[probe.name] = Finding(probe, failure="no answers to it were captured")
                    return
                finding = report.compare(probe, theirs, _masked(emulator, probe))
            except ParityFailed as error:
                finding = Finding(probe, failure=masked(str(error), run, IMAGE))
            findings[probe.name] = finding
            sys.stderr.write(f"{probe.name}: {finding.failure or count_of(len(finding.differences), 'difference')}\n")

        def _theirs(probe: Probe) -> list[Answer] | None:
            if service is None:
                assert options.against
                return report.read(options.against, probe)
            answers = _masked(service, probe)
            if options.capture:
                report.save(options.capture, probe, answers)
            return answers

        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            for _ in pool.map(ask, chosen):
                pass
        finally:  # a Ctrl-C too
            for side in (emulator, service):
                if side:
                    side.stop.set()
            pool.shutdown(cancel_futures=True)


def _masked(side: Side, probe: Probe) -> list[Answer]:
    return [
        replace(each, **masked({"type": each.type, "body": each.body}, side.run, side.image))
        for each in side.answers(probe)
    ]


def _service(run: Run) -> Side:
    """Return the side of Vertex AI, or of what answers in its place at `run.service`. Raises ParityFailed."""
    import requests
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import AuthorizedSession

    from vertex_api import credentials, transport

    if run.service:
        url = run.service.rstrip("/")
        return Side("service", url, url, transport.mount(requests.Session()), run, IMAGE, _EMULATOR_PAUSE)
    try:
        session: Any = transport.mount(AuthorizedSession(credentials.load()))
    except GoogleAuthError as error:
        raise ParityFailed(f"no credentials of Google Cloud: {credentials.explain(error)}") from error
    api = f"https://{run.region}-aiplatform.googleapis.com"
    return Side("Vertex AI", api, "https://storage.googleapis.com", session, run, IMAGE, _SERVICE_PAUSE)


@contextmanager
def _emulator(run: Run) -> Iterator[Side]:
    """Run an emulator on the folder of a run for the block. Raises ParityFailed."""
    variables = json.loads(
        _vertex_emulator("start", run, "--json", f"--project={run.project}", f"--region={run.region}")
    )
    url = variables["STORAGE_EMULATOR_HOST"]
    yield _emulator_side(url, run)


def _emulator_side(url: str, run: Run) -> Side:
    import requests

    from vertex_api import transport

    session = transport.mount(requests.Session())
    session.trust_env = False  # past the proxies that are set for the internet
    return Side("emulator", url, url, session, run, IMAGE, _EMULATOR_PAUSE)


def _end(run: Run, journal: Journal) -> bool:
    """Remove all that a run has made on both sides; returns whether nothing is left. Else the journal keeps the run."""
    left: list[str] = []
    for remove in (_clean_service, _remove_emulator):
        try:
            remove(run)
        except ParityFailed as error:
            left.append(str(error))
        except KeyboardInterrupt:
            sys.stderr.write(f"vertex-training: {run.id}: {_LEFT}\n")
            raise
    if not left:
        journal.remove(run)
    sys.stderr.writelines(f"vertex-training: {reason}; {_LEFT}\n" for reason in left)
    return not left


def _clean_service(run: Run) -> None:
    if run.service is not None:
        _service(run).clean()


def _remove_emulator(run: Run) -> None:
    """Stop the emulator of a run, and remove its containers and its folder. Raises ParityFailed."""
    deadline = time.monotonic() + _START_SECONDS
    while Path(run.emulator).is_dir():
        _vertex_emulator("stop", run)
        _kill_starting(run)
        try:
            _vertex_emulator("reset", run, "--yes")
        except ParityFailed:  # one that a killed run was starting is there by now
            if time.monotonic() > deadline:
                raise
            time.sleep(_EMULATOR_PAUSE)
        else:
            shutil.rmtree(run.emulator, ignore_errors=True)


def _kill_starting(run: Run) -> None:
    """Kill an emulator that a killed run was starting: it would make the folder again once that is removed."""
    command = ["ps", "-A", "-ww", "-o", "pid=", "-o", "args="]
    with suppress(OSError):  # no `ps` on this machine
        for line in subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines():
            pid, _, arguments = line.strip().partition(" ")
            if run.emulator in arguments and "vertex_emulator" in arguments:
                os.kill(int(pid), signal.SIGKILL)


def _vertex_emulator(verb: str, run: Run, *options: str) -> str:
    """Run a command of the emulator on the folder of a run and return what it prints. Raises ParityFailed."""
    command = [sys.executable, "-m", "vertex_emulator", verb, f"--data={run.emulator}", *options]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        raise ParityFailed(f"the emulator: {verb}: {lines[-1].removeprefix('vertex-emulator: ')}")
    return done.stdout
