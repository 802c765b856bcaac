"""The report of a run: what both sides answered, what differs, and to which rows of docs/fidelity.md that belongs.

All in it is masked: no project, number, account, token, bucket, time or id of anybody.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..review.pieces import count_of
from ..schema.source import explain_written
from .probes import Probe
from .side import STOPPED, Answer, ParityFailed

MAX_VALUE_LENGTH = 300
CUT = "the run was cut before it was asked"
_VERSION = 1


@dataclass(frozen=True)
class Difference:
    """What differs in the answers to a step: `path` in the answer, and the text of both values; "" for no value."""

    call: str
    path: str
    service: str
    emulator: str


@dataclass(frozen=True)
class Finding:
    """A probe with what differs, or the reason why it could not be asked."""

    probe: Probe
    differences: tuple[Difference, ...] = ()
    failure: str = ""


def compare(probe: Probe, service: Sequence[Answer], emulator: Sequence[Answer]) -> Finding:
    """Return what differs in the masked answers to a probe."""
    found: list[Difference] = []
    for step, ours, theirs in zip(probe.steps, emulator, service, strict=True):
        pairs = [("status", theirs.status, ours.status), ("content type", theirs.type.lower(), ours.type.lower())]
        pairs += list(_pairs(theirs.body, ours.body, "body"))
        if theirs.states != ours.states and not _are_alike(theirs.states, ours.states):
            pairs.append(("states", " → ".join(theirs.states), " → ".join(ours.states)))
        found += [
            Difference(theirs.call, path, _show(old), _show(new))
            for path, old, new in pairs
            if old != new and not any(fnmatchcase(path, pattern) for pattern in step.ignore)
        ]
    return Finding(probe, tuple(found))


def _are_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether two orders of states can be of the same job.

    A poll may miss a state, but not the last one; what a job that is started again was before is compared once.
    """
    common = [state for state in dict.fromkeys(first) if state in second]
    return first[-1:] == second[-1:] and common == [state for state in dict.fromkeys(second) if state in first]


def _pairs(service: Any, emulator: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(service, Mapping) and isinstance(emulator, Mapping):
        for key in sorted({*service, *emulator}):
            yield from _pairs(service.get(key), emulator.get(key), f"{path}.{key}")
    elif isinstance(service, list) and isinstance(emulator, list) and len(service) == len(emulator):
        for index, both in enumerate(zip(service, emulator, strict=True)):
            yield from _pairs(*both, f"{path}[{index}]")
    elif service != emulator or type(service) is not type(emulator):
        yield path, service, emulator


def _show(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"


def to_markdown(findings: Sequence[Finding]) -> str:
    """Return a report for people: how many probes agree, and each difference with the rows that it belongs to."""
    differing = [each for each in findings if each.differences]
    failed = [each for each in findings if each.failure]
    agree = len(findings) - len(differing) - len(failed)
    lines = [f"# Vertex AI and the emulator, {datetime.now(UTC):%Y-%m-%d}", ""]
    counts = f"{agree} agree{'s' * (agree == 1)}, {len(differing)} differ, {len(failed)} were not asked."
    lines += [f"{count_of(len(findings), 'probe')}: {counts}"]
    if is_cut(findings):
        lines += ["", "**The run was cut**: what was not asked says nothing of either side."]
    for finding in differing:
        rows = ", ".join(f"`{row}`" for row in finding.probe.rows)
        lines += ["", f"## {finding.probe.name}: {finding.probe.title}", "", f"Rows: {rows}", ""]
        lines += ["| call | where | Vertex AI | emulator |", "|---|---|---|---|"]
        lines += [
            f"| {' | '.join(_cell(part) for part in (each.call, each.path, each.service, each.emulator))} |"
            for each in finding.differences
        ]
    if failed:
        lines += ["", "## Not asked", ""]
        lines += [f"- {each.probe.name}: {each.failure}" for each in failed]
    return "\n".join(lines) + "\n"


def is_cut(findings: Sequence[Finding]) -> bool:
    """Whether a run has ended before all probes were asked."""
    return any(each.failure.startswith((CUT, STOPPED)) for each in findings)


def _cell(text: str) -> str:
    return f"`{' '.join(text.replace('`', chr(39)).replace('|', chr(92) + '|').split())}`" if text else "(none)"


def to_json(findings: Sequence[Finding]) -> str:
    """Return a report for programs."""
    probes = [
        {
            "name": each.probe.name,
            "rows": each.probe.rows,
            "differences": [asdict(difference) for difference in each.differences],
            **({"failure": each.failure} if each.failure else {}),
        }
        for each in findings
    ]
    whole = {"version": _VERSION, **({"cut": True} if is_cut(findings) else {}), "probes": probes}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def save(folder: Path, probe: Probe, answers: Sequence[Answer]) -> None:
    """Write the masked answers to a probe into a folder, for `read`. Raises ParityFailed."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(
        {"version": _VERSION, "answers": [asdict(each) for each in answers]}, indent=1, ensure_ascii=False
    )
    file = folder / f"{probe.name}.json"
    if message := explain_written(Path.cwd(), file):
        raise ParityFailed(message)
    file.write_text(text + "\n", encoding="utf-8")


def read(folder: Path, probe: Probe) -> list[Answer] | None:
    """Return the answers to a probe that `save` has written, None without them. Raises ParityFailed."""
    file = folder / f"{probe.name}.json"
    try:
        answers = json.loads(file.read_text(encoding="utf-8"))["answers"]
        found = [Answer(**{**each, "states": tuple(each["states"])}) for each in answers]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParityFailed(f"{file}: has no answers of `vertex-training parity --capture`") from error
    if [each.call for each in found] != [f"{step.method} {step.path}" for step in probe.steps]:
        raise ParityFailed(f"{file}: is of an older probe; capture it again")
    return found
