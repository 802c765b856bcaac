"""Serialised providers: they are inputs of every resource, so they are small, constant, and load anywhere."""

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import vertex_training
from pulumi import dynamic
from pulumi.dynamic.dynamic import serialize_provider

for name in vertex_training.__all__:
    getattr(vertex_training, name)  # defines the providers

ROOT = Path(__file__).parents[2]


def subclasses(parent: type[Any]) -> Iterator[type[Any]]:
    child: type[Any]
    for child in parent.__subclasses__():
        yield child
        yield from subclasses(child)


PROVIDERS = sorted(
    (
        provider
        for provider in subclasses(dynamic.ResourceProvider)
        if provider.__module__.startswith("vertex_training.") and not provider.__subclasses__()
    ),
    key=lambda provider: provider.__name__,
)


def test_all_providers_are_looked_at() -> None:
    assert {provider.__name__ for provider in PROVIDERS} >= {
        "CompletionProvider",
        "CustomJobProvider",
        "EmulatorProcessProvider",
        "HyperparameterTuningJobProvider",
        "TrainingImageProvider",
    }


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.__name__)
def test_a_provider_serialises_to_its_class_name(provider: type) -> None:
    text = serialize_provider(provider())
    assert len(text) < 200
    assert text == serialize_provider(provider())
    # A module and a class, looked up where it is loaded, and no state (protocol 4: two names, a class, no arguments).
    content = base64.b64decode(text)
    assert provider.__module__.encode() in content
    assert provider.__name__.encode() in content
    assert len(content) < len(provider.__module__) + len(provider.__name__) + 40


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.__name__)
def test_a_provider_is_not_secret(provider: type[Any]) -> None:
    assert provider.serialize_as_secret_always is False


def test_every_provider_loads_in_a_fresh_process(tmp_path: Path) -> None:
    loading = (
        "import base64, pickle, sys\n"
        "for text in sys.argv[1:]: print(type(pickle.loads(base64.b64decode(text))).__name__)\n"
    )
    texts = [serialize_provider(provider()) for provider in PROVIDERS]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", loading, *texts]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [provider.__name__ for provider in PROVIDERS], done.stderr


def test_the_text_is_the_same_in_every_process() -> None:
    writing = (
        "import vertex_training, sys\n"
        "from pulumi.dynamic.dynamic import serialize_provider\n"
        "from vertex_training.jobs.provider import CustomJobProvider\n"
        "sys.stdout.write(serialize_provider(CustomJobProvider()))\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", writing],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
