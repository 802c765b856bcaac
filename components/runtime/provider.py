"""The base of the work behind all dynamic providers; `providers.py` at the top has those that Pulumi sees."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pulumi import dynamic

from vertex_api import credentials

from . import engine, pacing


class Provider(dynamic.ResourceProvider):
    """Base of the work of all providers. They hold nothing: each call may come from another thread."""

    serialize_as_secret_always = False
    input_names: ClassVar[Sequence[str]] = ()
    """Those properties that are inputs; all others are outputs."""

    def configure(self, req: dynamic.ConfigureRequest) -> None:
        """Take the stack's pace and credentials, listen for Ctrl-C, and watch the engine, with which this process ends.

        From here on, errors are reported without a traceback. Pulumi calls this once, before anything else.
        """
        credentials.use_config({key: req.config.get(key) for key in credentials.CONFIG_KEYS})
        pacing.current().override(req.config.get(pacing.CONFIG_KEY))
        engine.listen_for_cancellation()
        engine.watch()
        engine.report_plain_errors()

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Do what `create` does with the new inputs. The resource keeps its id."""
        return dynamic.UpdateResult(self.create(news).outs)

    def read_result(self, id_: str, props: dict[str, Any], **outputs: Any) -> dynamic.ReadResult:
        """Return what `read` reports of a resource that exists: the inputs among `props`, and its outputs."""
        inputs = {name: props[name] for name in self.input_names if name in props}
        return dynamic.ReadResult(id_, {**inputs, **outputs}, inputs)
