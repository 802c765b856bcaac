"""What a program gives a component as `args`: plain values of a shape, read when the component is made."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pulumi

from vertex_api.messages import KeyPath, truncate
from vertex_api.validation.formats import Violation
from vertex_api.validation.shape import MUST_BE_OBJECT, canonicalize

from ..errors import DeclarationErrors
from .training import Place, place


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


def require_keywords(
    resource: str, name: Any, opts: Any = None, foundation: Any = None, **objects: Mapping[str, Any] | None
) -> None:
    """Raise DeclarationErrors for what a resource is given beside `args` in another type; `objects` are mappings."""
    wrong = {key: MUST_BE_OBJECT for key, each in objects.items() if not isinstance(each, Mapping | None)}
    if not isinstance(name, str):
        wrong["name"] = "must be a text"
    if not isinstance(opts, pulumi.ResourceOptions | None):
        wrong["opts"] = f"{truncate(repr(opts))} must be a pulumi.ResourceOptions"
    if foundation is not None and not hasattr(foundation, "program"):
        wrong["foundation"] = f"{truncate(repr(foundation))} must be the `foundation` of a TrainingStack"
    if wrong:
        at = place(f'{resource} "{name}"')
        raise DeclarationErrors([at((key,), message) for key, message in wrong.items()])


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
