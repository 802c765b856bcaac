"""What a preview or an update shows: its text, and its changes in short."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

_UNCHANGED = ("same", "refresh", "create-replacement", "delete-replaced")
"""Steps that change nothing declared, and the parts of a replacement."""


class Preview(NamedTuple):
    """What a command has printed with `--diff`, and its changes: `op`, `type`, `name` and the `changed` paths."""

    text: str
    steps: list[dict[str, Any]]


def preview_stack(root: Path, environment: dict[str, str], stack: str) -> Preview:
    """Run `pulumi preview --diff` on a stack of the project in a folder."""
    return run_with_steps(root, environment, "preview", "--diff", "--stack", stack)


def update_stack(root: Path, environment: dict[str, str], stack: str, *options: str) -> Preview:
    """Run `pulumi up --diff` on a stack; what it changes is what its preview would show."""
    return run_with_steps(root, environment, "up", "--yes", "--skip-preview", "--diff", "--stack", stack, *options)


def run_with_steps(root: Path, environment: dict[str, str], *arguments: str) -> Preview:
    """Run a command of `pulumi` on a stack, and return what it prints and changes."""
    log = root.parent / f"events-{root.name}.jsonl"
    log.unlink(missing_ok=True)
    command = ["pulumi", *arguments, "--non-interactive", "--event-log", str(log)]
    done = subprocess.run(
        command,
        cwd=root,
        env=environment | {"PULUMI_DEBUG_COMMANDS": "true"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
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
