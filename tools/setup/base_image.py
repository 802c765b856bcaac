"""The base image of the examples: present, pulled, or built here if no registry can be reached."""

import json

from tools.setup import debootstrap_image
from tools.setup.progress_output import ProgressOutput
from tools.setup.subprocess_runner import CommandFailed, SetupError, run_program

TAG = "python:3.11-slim-bookworm"
LABEL = "vertex-training.made-with"
INSPECT_LIMIT_SECONDS = 15
PULL_LIMIT_SECONDS = 180


def describe_if_ready() -> str | None:
    """Describe the image; return `None` if the daemon does not have it."""
    command = ("docker", "image", "inspect", "--format", "{{json .Config.Labels}}", TAG)
    try:
        labels = json.loads(run_program(*command, limit=INSPECT_LIMIT_SECONDS)) or {}
    except CommandFailed:
        return None
    return f"Base image: {TAG}" + (f", made here with {labels[LABEL]}" if labels.get(LABEL) else "")


def set_up_and_describe(output: ProgressOutput) -> str:
    """Pull the image or, if that fails, build one like it. Raises SetupError."""
    try:
        progress = output.create_seconds_callback(f"pulling {TAG}")
        run_program("docker", "pull", TAG, limit=PULL_LIMIT_SECONDS, progress=progress)
    except CommandFailed as pull_error:
        try:
            debootstrap_image.build_image(TAG, LABEL, output)
        except CommandFailed as build_error:
            raise SetupError(
                f"Base image: {TAG} could neither be pulled nor made here.\n  pulling: {pull_error}\n"
                f"  making: {build_error}\nGet the image onto this machine (`docker pull` through a mirror, or "
                "`docker load` of a saved one), then run `make setup` again."
            ) from build_error
        return f"Base image: {TAG}, made here with debootstrap because it could not be pulled"
    return f"Base image: {TAG}, pulled"
