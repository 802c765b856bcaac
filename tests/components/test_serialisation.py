"""Serialised providers: they are inputs of every resource, so they are small, constant, and load anywhere."""

import base64
import inspect
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import vertex_training
from pulumi import dynamic
from pulumi.dynamic.dynamic import serialize_provider
from vertex_training import providers
from vertex_training.runtime.resource import DynamicResource, Provider

for name in vertex_training.__all__:
    getattr(vertex_training, name)  # defines the resources

ROOT = Path(__file__).parents[2]
PROVIDERS = [
    provider
    for _, provider in inspect.getmembers(providers, inspect.isclass)
    if issubclass(provider, dynamic.ResourceProvider) and hasattr(provider, "work")
]


def test_every_dynamic_resource_has_a_provider_there() -> None:
    for provider in PROVIDERS:
        import_module(provider.work.partition(":")[0], "vertex_training")
    resources = {each.__name__ for each in DynamicResource.__subclasses__() if not each.__name__.startswith("_")}
    assert {provider.__name__ for provider in PROVIDERS} == resources | {
        *("CustomJob", "HyperparameterTuningJob", "TrainingPipeline")
    }


def test_the_names_in_states_stay() -> None:
    """States of all versions hold them: none of these may ever be renamed or moved."""
    assert sorted(f"{provider.__module__}.{provider.__name__}" for provider in PROVIDERS) == [
        "vertex_training.providers.Completion",
        "vertex_training.providers.CustomJob",
        "vertex_training.providers.Emulator",
        "vertex_training.providers.EmulatorSchedule",
        "vertex_training.providers.HyperparameterTuningJob",
        "vertex_training.providers.Ledger",
        "vertex_training.providers.PythonPackage",
        "vertex_training.providers.ScheduleStatus",
        "vertex_training.providers.TrainingImage",
        "vertex_training.providers.TrainingPipeline",
    ]


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.__name__)
def test_each_call_reaches_the_work(provider: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    module, _, name = provider.work.partition(":")
    work = getattr(import_module(module, "vertex_training"), name)
    assert issubclass(work, Provider)
    calls = []
    for method in ("configure", "check", "diff", "create", "read", "update", "delete"):
        monkeypatch.setattr(
            work, method, lambda self, *given, method=method: calls.append((method, *given)) or "answer"
        )
    for method, count in {"configure": 1, "check": 2, "diff": 3, "create": 1, "read": 2, "update": 3}.items():
        given = ({"number": number} for number in range(count))
        assert getattr(provider(), method)(*given) == (None if method == "configure" else "answer")
    provider().delete("id", {})
    numbers = [{"number": 0}, {"number": 1}, {"number": 2}]
    assert calls == [
        ("configure", *numbers[:1]),
        ("check", *numbers[:2]),
        ("diff", *numbers),
        ("create", *numbers[:1]),
        ("read", *numbers[:2]),
        ("update", *numbers),
        ("delete", "id", {}),
    ]


def test_a_provider_loads_its_own_work_only() -> None:
    program = (
        "import sys; from vertex_training import providers; before = [*sys.modules]; providers.Emulator()._work();"
        "names = [name for name in sys.modules if name.startswith('vertex_training.')]; print(*before, '|', *names)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    before, _, after = done.stdout.partition("|")
    assert [name for name in before.split() if name.startswith("vertex_")] == [
        "vertex_training",
        "vertex_training.providers",
    ]
    assert not {name for name in after.split() if name.startswith(("vertex_training.jobs", "vertex_training.images"))}


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.__name__)
def test_a_provider_serialises_to_its_class_name(provider: type) -> None:
    text = serialize_provider(provider())
    assert len(text) <= 100
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
        "from vertex_training.providers import CustomJob\n"
        "sys.stdout.write(serialize_provider(CustomJob()))\n"
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
