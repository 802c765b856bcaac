"""What `help()` says of the resources that a program writes: every argument and every output by its name."""

import inspect

import pytest
import vertex_training

JOBS = ("HyperparameterTuningJob", "TrainingPipeline")


def of_class(name: str) -> type:
    return getattr(vertex_training, name)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["CustomJob", "Completion", "Schedule", "TrainingImage", "PythonPackage"])
def test_help_names_arguments_and_outputs(name: str) -> None:
    found = of_class(name)
    arguments = [*inspect.signature(found).parameters][1:]  # after the name
    ours = [base for base in found.__mro__ if base.__module__.startswith("vertex_training")]
    outputs = [
        key for base in ours for key, hint in vars(base).get("__annotations__", {}).items() if "Output" in str(hint)
    ]
    properties = [key for base in ours for key, value in vars(base).items() if isinstance(value, property)]
    documented = inspect.getdoc(found) or ""
    assert [
        each for each in (*arguments, *outputs, *properties) if each[0] != "_" and f"`{each}`" not in documented
    ] == []
    assert outputs and "Errors: " in documented


@pytest.mark.parametrize("name", JOBS)
def test_other_jobs_refer_to_custom_job(name: str) -> None:
    assert inspect.signature(of_class(name)) == inspect.signature(vertex_training.CustomJob)
    documented = inspect.getdoc(of_class(name)) or ""
    assert "as for `CustomJob`" in " ".join(documented.split()) and f"`{name}Args`" in documented
