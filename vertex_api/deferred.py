"""Packages that run their `__init__` only once something in it is asked for, and not for the sake of a submodule.

`google.cloud.aiplatform_v1` imports some forty clients and a thousand messages, which takes a second of the processor.
Jobs need two of those clients. From Python 3.15 on, the package defers its imports itself (PEP 810).

A class that has a module of its own, named as generators of code name it (`BucketIAMMember` in `bucket_iam_member`), is
taken from there without the package's `__init__` too.
"""

import re
import sys
import threading
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_loading = threading.RLock()


class _DeferredPackage(ModuleType):
    def __getattr__(self, name: str) -> Any:
        """Return a submodule, or an attribute that the package has once its `__init__` has run."""
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if find_spec(f"{self.__name__}.{name}"):
            return import_module(f"{self.__name__}.{name}")
        own_module = f"{self.__name__}.{_snake(name)}"
        if find_spec(own_module) and hasattr(import_module(own_module), name):
            return getattr(import_module(own_module), name)
        with _loading:  # which other threads wait for, while one runs the `__init__`
            if type(self) is _DeferredPackage:
                self.__class__ = _LoadingPackage
                assert self.__spec__ is not None and self.__spec__.loader is not None
                self.__spec__.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        return ModuleType.__getattribute__(self, name)


class _LoadingPackage(_DeferredPackage):
    """A package whose `__init__` runs."""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def defer(name: str) -> None:
    """Import a package without running its `__init__` yet. Does nothing if it is imported already.

    Raises ModuleNotFoundError if it is not installed.
    """
    with _loading:
        if name in sys.modules:
            return
        spec = find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        package = module_from_spec(spec)
        package.__class__ = _DeferredPackage
        sys.modules[name] = package
        parent, _, attribute = name.rpartition(".")
        if parent:
            setattr(import_module(parent), attribute, package)
