"""A clean clone of this checkout, and what its files say."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from vertex_training.settings.settings import Settings

from tests import git_server
from tests.engine.environment import link_environment
from tools.template import copy_checkout

NAMES = {"project": "acme-dev", "projectNumber": "123456789012", "region": "europe-west4"}


def clone(folder: Path) -> Path:
    """Make a git repository of this checkout's files, whose environment needs no set-up."""
    copy_checkout(folder)
    git_server.commit(folder)
    link_environment(folder)
    return folder


def read_stack_config(root: Path, stack: str) -> dict[str, Any]:
    """Return what a stack file says."""
    return dict(yaml.safe_load((root / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"])


def parse_settings(root: Path, stack: str, values: dict[str, Any]) -> Settings:
    """Return the settings of a stack, as the engine hands its config over."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    return Settings.load_from_config("demo", stack, root, texts)


def strip_values(preview: str) -> list[str]:
    """Return the lines of a preview without texts, which differ from project to project."""
    return [re.sub(r'"[^"]*"', "", line).strip() for line in preview.splitlines()]
