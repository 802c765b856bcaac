"""The base image of the examples: present, pulled, or made here where no registry can be reached."""

import json

from tools.setup import debootstrap
from tools.setup.commands import CommandFailed, run
from tools.setup.console import Console
from tools.setup.errors import SetupError

TAG = "python:3.11-slim-bookworm"
LABEL = "vertex-training.made-with"
INSPECT_LIMIT_SECONDS = 15
PULL_LIMIT_SECONDS = 180


def find() -> str | None:
    """The image in one line; None when the daemon does not have it."""
    try:
        labels = run(
            *("docker", "image", "inspect", "--format", "{{json .Config.Labels}}", TAG), limit=INSPECT_LIMIT_SECONDS
        )
    except CommandFailed:
        return None
    made = (json.loads(labels) or {}).get(LABEL)
    return f"Base image: {TAG}" + (f", made here with {made}" if made else "")


def make(console: Console) -> str:
    """Pull the image or, where it cannot be pulled, make one like it. Raises SetupError."""
    try:
        run("docker", "pull", TAG, limit=PULL_LIMIT_SECONDS, progress=console.progress(f"pulling {TAG}"))
    except CommandFailed as not_pulled:
        try:
            debootstrap.make_image(TAG, LABEL, console)
        except CommandFailed as not_made:
            raise SetupError(
                f"Base image: {TAG} could neither be pulled nor made here.\n  pulling: {not_pulled}\n"
                f"  making: {not_made}\nGet the image onto this machine (`docker pull` through a mirror, or "
                "`docker load` of a saved one), then run `make setup` again."
            ) from not_made
        return f"Base image: {TAG}, made here with debootstrap because it could not be pulled"
    return f"Base image: {TAG}, pulled"
