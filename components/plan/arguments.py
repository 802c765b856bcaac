"""What a program gives a resource: `args`, plain values of a shape that are read when it is made, and the rest."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import pulumi

from vertex_api.messages import KeyPath, truncate
from vertex_api.names import closest_name, did_you_mean
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import MUST_BE_OBJECT, canonicalize

from ..errors import DeclarationErrors
from .training import Place, place

Init = TypeVar("Init", bound=Callable[..., None])
_OBJECTS = ("lifecycle", "secrets", "data", "deadlines")
"""Arguments that are mappings, of those resources that have them."""
_OPTIONS = [*inspect.signature(pulumi.ResourceOptions).parameters]


def read_arguments(
    args: Any,
    where: Place,
    rules: Callable[[Any], Iterable[Violation]] = lambda _: (),
    shape: Any = None,
    name_problem: str | None = None,
) -> Any:
    """Return the arguments of a resource without those that are None, in the form of a `shape` if there is one.

    Raises DeclarationErrors for arguments that are no plain values, that do not have the shape, or that break `rules`,
    and with them for the `name_problem` of the resource.
    """
    violations = [*_impure(args, ())]
    given = {key: each for key, each in args.items() if each is not None} if isinstance(args, Mapping) else {}
    if shape and not violations:
        given, problems = canonicalize(shape, given)
        violations = [(each.path, each.message) for each in problems]
    violations = violations or [*rules(given)]
    if name_problem:
        violations.insert(0, ((), name_problem))
    if violations:
        raise DeclarationErrors([where(*violation) for violation in violations])
    return given


def checked(init: Init) -> Init:
    """Let a resource's `__init__` begin only with the arguments that it has, in their types.

    What is wrong with them is one line of a DeclarationErrors, where Python would end the program with a traceback.
    """
    signature = inspect.signature(init)

    @wraps(init)
    def begin(self: Any, *values: Any, **keywords: Any) -> None:
        try:
            wrong = [*_mistyped(signature.bind(self, *values, **keywords).arguments)]
        except TypeError as error:
            unknown = [key for key in keywords if key not in signature.parameters]
            wrong = [((key,), _unknown(key, signature)) for key in unknown] or [((), str(error))]
        if wrong:
            names = [keywords["name"]] if "name" in keywords else values[:1]
            at = place(" ".join([type(self).__name__, *(f'"{name}"' for name in names)]))
            raise DeclarationErrors([at(path, message) for path, message in wrong])
        init(self, *values, **keywords)

    return cast(Init, begin)


def _unknown(key: str, signature: inspect.Signature) -> str:
    _, *known = signature.parameters
    if not closest_name(key, known) and (option := closest_name(key, _OPTIONS)):
        return f"is an option; give opts=pulumi.ResourceOptions({option}=…)"
    return f"is no argument of it{did_you_mean(key, known)}"


def _mistyped(given: Mapping[str, Any]) -> Iterator[Violation]:
    for key in _OBJECTS:
        if not isinstance(given.get(key), Mapping | None):
            yield (key,), MUST_BE_OBJECT
    name, opts, foundation = (given.get(key) for key in ("name", "opts", "foundation"))
    if not isinstance(name, str):
        yield ("name",), "must be a text"
    if not isinstance(opts, pulumi.ResourceOptions | None):
        yield ("opts",), f"{truncate(repr(opts))} must be a pulumi.ResourceOptions"
    if foundation is not None and not hasattr(foundation, "program"):
        yield ("foundation",), f"{truncate(repr(foundation))} must be the `foundation` of a TrainingStack"


def _impure(value: Any, path: KeyPath) -> Iterator[Violation]:
    """Find the values that JSON does not have. An Output's is not known yet when the arguments are read."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _impure(each, (*path, str(key)))
    elif not path:
        yield (), MUST_BE_OBJECT
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _impure(each, (*path, index))
    elif isinstance(value, pulumi.Output):
        yield path, "is an Output, and is read before outputs are known; give a plain value"
    elif not isinstance(value, str | int | float | None):
        yield path, f"{truncate(repr(value))} must be a text, a number, true or false, a list or an object"
