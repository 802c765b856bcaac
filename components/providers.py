"""The providers of all dynamic resources, as Pulumi's states name them: this module and its classes keep their names.

A state holds a pickled provider for each resource, which is its class's module and name. What a provider does stands
elsewhere and may move: it is imported in the provider's process, and neither in a program nor in a provider of another
resource.
"""

import gc
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from pulumi import dynamic


class _Provider(dynamic.ResourceProvider):
    """Hands each call to the class `work`, a module of this package and a name. It holds nothing."""

    serialize_as_secret_always = False
    work: ClassVar[str]

    @classmethod
    @cache
    def _work(cls) -> dynamic.ResourceProvider:
        module, _, name = cls.work.partition(":")
        made: dynamic.ResourceProvider = getattr(import_module(module, __package__), name)()
        return made

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._work(), method)(*arguments)
        except Exception as error:
            import_module(".runtime.engine", __package__).abort_call(error)
            raise

    def configure(self, req: dynamic.ConfigureRequest) -> None:
        self._call("configure", req)
        # What is imported stays, and each search for garbage among it costs providers a tenth of a preview.
        gc.freeze()

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        result: dynamic.CheckResult = self._call("check", _olds, news)
        return result

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        result: dynamic.DiffResult = self._call("diff", _id, _olds, _news)
        return result

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        result: dynamic.CreateResult = self._call("create", props)
        return result

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        result: dynamic.ReadResult = self._call("read", id_, props)
        return result

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.UpdateResult:
        result: dynamic.UpdateResult = self._call("update", _id, _olds, _news)
        return result

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        self._call("delete", _id, _props)


class CustomJob(_Provider):
    """The provider of `CustomJob`."""

    work = ".jobs.provider:CustomJobProvider"


class HyperparameterTuningJob(_Provider):
    """The provider of `HyperparameterTuningJob`."""

    work = ".jobs.provider:HyperparameterTuningJobProvider"


class TrainingPipeline(_Provider):
    """The provider of `TrainingPipeline`."""

    work = ".jobs.provider:TrainingPipelineProvider"


class Completion(_Provider):
    """The provider of `Completion`."""

    work = ".jobs.completion:CompletionProvider"


class Ledger(_Provider):
    """The provider of `Ledger`."""

    work = ".jobs.ledger:LedgerProvider"


class EmulatorSchedule(_Provider):
    """The provider of `EmulatorSchedule`."""

    work = ".schedules.provider:EmulatorScheduleProvider"


class ScheduleStatus(_Provider):
    """The provider of `ScheduleStatus`."""

    work = ".schedules.provider:ScheduleStatusProvider"


class TrainingImage(_Provider):
    """The provider of `TrainingImage`."""

    work = ".images.image:TrainingImageProvider"


class PythonPackage(_Provider):
    """The provider of `PythonPackage`."""

    work = ".packages:PythonPackageProvider"


class Emulator(_Provider):
    """The provider of `Emulator`."""

    work = ".runtime.emulator:EmulatorProvider"
