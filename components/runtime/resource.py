"""The bases of a dynamic resource: DynamicResource in a program, Provider in its process; and values with outputs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

import pulumi
from pulumi import dynamic
from pulumi.runtime.settings import get_monitor

from vertex_api import credentials

from . import DYNAMIC_TYPE, engine, pacing, sdk

Result = TypeVar("Result")
_OWN_PROVIDER = "has no effect: it is Pulumi's own for Python; credentials and the region come from the stack's config"
_OWN_PLUGIN = "has no effect: the provider is Pulumi's own for Python, of the installed SDK; leave it out"
_ADOPT = 'is not possible; give a job `lifecycle={"adopt": ID}`; images and packages that are there are found'
_REFUSED = {
    "import_": _ADOPT,
    "version": _OWN_PLUGIN,
    "plugin_download_url": _OWN_PLUGIN,
    "provider": _OWN_PROVIDER,
    "providers": _OWN_PROVIDER,
    "custom_timeouts": "has no effect: a job ends by scheduling.timeout, and a wait by the deadlines of a Completion",
}
_REFUSED_OF_COMPONENT = {
    **dict.fromkeys(
        (
            "additional_secret_outputs",
            "custom_timeouts",
            "delete_before_replace",
            "ignore_changes",
            "replace_on_changes",
            "retain_on_delete",
        ),
        "is for one resource, and this has several: set it in a transform, which sees each of them",
    ),
    "import_": "is not possible: a component has nothing to import",
}
"""Options that Pulumi would take without a word and without an effect."""
_MODULE = DYNAMIC_TYPE.partition("/")[2].rstrip(":")


class PerRun(Generic[Result]):
    """A value that each run of a program has of its own, by the run's connection to its engine."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[Any, Result] = WeakKeyDictionary()

    def get(self, make: Callable[[], Result]) -> Result:
        """Return the value of the current run, which `make` makes if there is none."""
        connection = get_monitor()
        if connection not in self._values:
            made = make()
            self._values.setdefault(connection, made)
        return self._values[connection]

    def clear(self) -> None:
        """Forget the values of all runs."""
        self._values.clear()


class DynamicResource(dynamic.Resource):
    """A dynamic resource whose downstream resources are skipped if it fails.

    With `pulumi up --continue-on-error`, the program continues after a failure. The SDK up to 3.270 lets the outputs of
    the failed resource raise, its URN among them, and so the registration of each resource that depends on it: the
    program ends with a traceback. Here the URN is known and the outputs are unknown, as with later SDKs. So those
    resources are registered, and the engine skips them and keeps what its state has of them.

    Only where the engine has failed or skipped the resource: any other error is the program's, has kept it from being
    registered, and is raised on, as what depends on an unregistered resource breaks the state (decision 15).
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(module=_MODULE, name=cls.__name__, **options)

    output_names: ClassVar[tuple[str, ...]] = ()
    """The outputs that other resources or a program may use, beside `urn` and `id`."""

    def __init__(
        self,
        provider: dynamic.ResourceProvider,
        name: str,
        props: dict[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        refuse_options(f'{type(self).__name__} "{name}"', opts, _REFUSED)
        failures = sdk.failures()
        with engine.without_stack_trace():
            super().__init__(provider, name, props, opts)
        if pulumi.runtime.is_dry_run():
            return
        parent = (opts.parent if opts else None) or pulumi.runtime.get_root_resource()
        type_token = f"pulumi-python:{self._resource_type_name}"

        def failed_urn(error: Exception) -> pulumi.Output[str]:
            def find(parent_urn: str) -> str:
                if (urn := failures.get((type_token, name, parent_urn))) is None:
                    raise error
                return urn

            return pulumi.Output.from_input(parent.urn if parent else "").apply(find)

        def unknown_output(error: Exception) -> pulumi.Output[Any]:
            def make(_urn: str) -> pulumi.Output[Any]:
                # Futures, because a coroutine that a program's end leaves without its first step is a warning.
                value, is_known = (asyncio.get_running_loop().create_future() for _ in range(2))
                value.set_result(None)
                is_known.set_result(False)
                return pulumi.Output({self}, future=value, is_known=is_known)

            return failed_urn(error).apply(make)

        self.__dict__["urn"] = self.urn.recover(failed_urn)
        for key in ("id", *self.output_names):
            self.__dict__[key] = self.__dict__[key].recover(unknown_output)

    def recovered(self, name: str, recover: Callable[[], Any] = lambda: None) -> pulumi.Output[Any]:
        """Return an output, or what `recover` returns if this resource fails, then without a dependency on it."""
        output: pulumi.Output[Any] = self.__dict__[name]
        if pulumi.runtime.is_dry_run():
            return output

        def recover_failed(error: Exception) -> Any:
            if isinstance(error, sdk.Failed):
                return recover()
            raise error

        return output.apply(_raise_if_unknown, run_with_unknowns=True).recover(recover_failed)


def formerly(opts: pulumi.ResourceOptions, name: str, former: Sequence[str]) -> pulumi.ResourceOptions:
    """Return the options of the resource `name` that had other names before: it is the same one to the engine.

    It may have been outside of its component too, also under its own name: `pulumi state move` puts it there.
    """
    if not former:  # a merge of nothing would be a thirtieth of a preview
        return opts
    beside = [pulumi.Alias(name=each) for each in former if each != name]
    outside = [pulumi.Alias(name=each, parent=None) for each in former]
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=[*beside, *outside]))


def refuse_options(
    resource: str, opts: pulumi.ResourceOptions | None, reasons: Mapping[str, str] = _REFUSED_OF_COMPONENT
) -> None:
    """Raise RunError for an option of a resource that would have no effect; without `reasons`, of a component."""
    for name, reason in reasons.items():
        if getattr(opts, name, None):
            raise pulumi.RunError(f"{resource}: {name} {reason}")


def _raise_if_unknown(value: Any) -> Any:
    """Raise `Failed` if a value is unknown after its resource was registered, as those of failed resources are."""
    if pulumi.contains_unknowns(value):
        raise sdk.Failed("the engine has failed or skipped the resource")
    return value


class Provider(dynamic.ResourceProvider):
    """Base of the work of all providers, which `providers.py` at the top hands each call to.

    They hold nothing: each call may come from another thread.
    """

    serialize_as_secret_always = False
    input_names: ClassVar[Sequence[str]] = ()
    """Those properties that are inputs; all others are outputs."""
    setting: ClassVar[Callable[[str], str | None]] = staticmethod(lambda _key: None)
    """The value of a key of the stack's config, as the engine passes it; None if it has none. Not of arguments."""

    def configure(self, req: dynamic.ConfigureRequest) -> None:
        """Take the stack's pace and credentials, listen for Ctrl-C, and watch the engine, with which this process ends.

        From here on, errors are reported without a traceback. Pulumi calls this once, before anything else.
        """
        engine.report_plain_errors()
        credentials.use_config({key: req.config.get(key) for key in credentials.CONFIG_KEYS})
        Provider.setting = staticmethod(lambda key: req.config.get(f"vertex-training:{key}") or None)
        pacing.current().override(Provider.setting(pacing.KEY))
        engine.listen_for_cancellation()
        engine.watch()

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Do what `create` does with the new inputs. The resource keeps its id."""
        return dynamic.UpdateResult(self.create(news).outs)

    def read_result(self, id_: str, props: dict[str, Any], **outputs: Any) -> dynamic.ReadResult:
        """Return what `read` reports of a resource that exists: the inputs among `props`, and its outputs."""
        inputs = {name: props[name] for name in self.input_names if name in props}
        return dynamic.ReadResult(id_, {**inputs, **outputs}, inputs)


def when_known(function: Callable[..., Result], *inputs: Any) -> Result | pulumi.Output[Result]:
    """Call a function with `inputs`: at once, or if there are outputs in them, as soon as those are known."""
    if has_output(inputs):
        return pulumi.Output.all(*inputs).apply(lambda values: function(*values))
    return function(*inputs)


def item(fields: Any, key: str) -> Any:
    """Return the item of a mapping, which may be an output: then the item is one too."""
    return when_known(lambda known: known[key], fields)


def has_output(value: Any) -> bool:
    """Return whether a value is an output, or an object or list with an output in it at any depth."""
    if isinstance(value, Mapping):
        return any(map(has_output, value.values()))
    return any(map(has_output, value)) if isinstance(value, list | tuple) else isinstance(value, pulumi.Output)
