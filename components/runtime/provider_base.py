"""The base of all dynamic providers of this package."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pulumi import dynamic

from vertex_api.calls import credentials

from . import engine_cancellation
from .engine_watcher import start_engine_watcher
from .provider_error_messages import report_errors_without_traceback
from .submission_pacing import CONFIG_KEY, get_submission_pacing


class Provider(dynamic.ResourceProvider):
    """Base of all providers. They hold nothing, so that their pickled form in Pulumi's state is a constant."""

    serialize_as_secret_always = False
    input_names: ClassVar[Sequence[str]] = ()
    """Those properties that are inputs; all others are outputs."""

    def configure(self, req: dynamic.ConfigureRequest) -> None:
        """Take the stack's pace and credentials, listen for Ctrl-C, and watch the engine, with which this process ends.

        From here on, errors are reported without a traceback. Pulumi calls this once, before anything else.
        """
        credentials.use_config({key: req.config.get(key) for key in credentials.CONFIG_KEYS})
        get_submission_pacing().set_pace_override(req.config.get(CONFIG_KEY))
        engine_cancellation.listen_for_cancellation()
        start_engine_watcher()
        report_errors_without_traceback()

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Do what `create` does with the new inputs. The resource keeps its id."""
        return dynamic.UpdateResult(self.create(news).outs)

    def build_read_result_with_inputs(self, id_: str, props: dict[str, Any], **outputs: Any) -> dynamic.ReadResult:
        """Return what `read` reports of a resource that exists: the inputs among `props`, and its outputs."""
        inputs = {name: props[name] for name in self.input_names if name in props}
        return dynamic.ReadResult(id_, {**inputs, **outputs}, inputs)
