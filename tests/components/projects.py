"""A project on disk for tests: a stack file, files beside it, and the settings or problems that come of them."""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from vertex_training.errors import KNOWN_HERE, DeclarationErrors
from vertex_training.settings.settings import Settings

LOCAL = """\
config:
  vertex-training:target: local
"""
CLOUD = """\
config:
  vertex-training:target: gcp
  vertex-training:project: acme-dev
  vertex-training:projectNumber: "123456789012"
  vertex-training:region: us-central1
"""
_INCLUDE = "  vertex-training:include: [jobs.yaml]\n"
INCLUDING = LOCAL + _INCLUDE
CLOUD_INCLUDING = CLOUD + _INCLUDE


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))


def load(root: Path, stack: str, stack_name: str = "dev", **files: str) -> Settings:
    """The settings of a stack; keys of `files` are file names, and `jobs` is short for `jobs.yaml`."""
    named = {"jobs.yaml" if name == "jobs" else name: text for name, text in files.items()}
    write(root, {f"stacks/Pulumi.{stack_name}.yaml": stack, **named})
    given = yaml.safe_load(textwrap.dedent(stack))["config"]
    # As the engine hands it over: texts as they are, everything else as JSON.
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    return Settings.load_from_config("team", stack_name, root, config)


def problems(root: Path, stack: str, **files: str) -> list[str]:
    """What is wrong, a line each; nothing else is said but how a rule of the service is lifted."""
    with pytest.raises(DeclarationErrors) as failure:
        load(root, stack, **files)
    count, *lines = str(failure.value).splitlines()
    if lines[-1].startswith(f"  {KNOWN_HERE}"):
        lines.pop()
    assert len(lines) == len(failure.value.problems)
    assert count == f"{len(lines)} problem{'s' if len(lines) > 1 else ''} in what is declared:"
    return [line.removeprefix("  ") for line in lines]
