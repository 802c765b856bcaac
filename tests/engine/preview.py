"""What a preview shows: its text, and its changes in short."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

_UNCHANGED = ("same", "create-replacement", "delete-replaced")
"""Steps that change nothing, and the parts of a replacement."""


class Preview(NamedTuple):
    """What `pulumi preview --diff` has printed, and its changes: `op`, `type`, `name` and the `changed` paths."""

    text: str
    steps: list[dict[str, Any]]


def preview_stack(root: Path, environment: dict[str, str], stack: str) -> Preview:
    """Run `pulumi preview --diff` on a stack of the project in a folder."""
    log = root.parent / f"events-{root.name}.jsonl"
    log.unlink(missing_ok=True)
    command = ["pulumi", "preview", "--diff", "--stack", stack, "--non-interactive", "--event-log", str(log)]
    done = subprocess.run(
        command,
        cwd=root,
        env=environment | {"PULUMI_DEBUG_COMMANDS": "true"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0 and "Traceback" not in done.stdout, done.stdout
    return Preview(done.stdout, _read_steps(log))


def select_changes(preview_json: str) -> list[dict[str, Any]]:
    """Return the changes that `pulumi preview --json` has printed, in the form of `Preview.steps`."""
    return _sort_changes(json.loads(preview_json)["steps"])


def _read_steps(log: Path) -> list[dict[str, Any]]:
    events = [json.loads(line).get("resourcePreEvent") for line in log.read_text().splitlines()]
    return _sort_changes(event["metadata"] for event in events if event)


def _sort_changes(steps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [_reduce_step(step) for step in steps if _is_change(step)]
    return sorted(found, key=lambda step: (step["type"], step["name"], step["op"]))


def _is_change(step: dict[str, Any]) -> bool:
    """Return whether the engine would show a step. Providers that nobody declares are called `default…`."""
    is_default_provider = "::pulumi:providers:" in step["urn"] and "::default" in step["urn"]
    return step["op"] not in _UNCHANGED and not is_default_provider


def _reduce_step(step: dict[str, Any]) -> dict[str, Any]:
    urn = step["urn"].split("::")
    reduced = {"op": step["op"], "type": urn[2].rpartition("$")[2].rpartition(":")[2], "name": urn[3]}
    changed = sorted(step.get("detailedDiff") or {})
    return reduced | ({"changed": changed} if changed else {})
