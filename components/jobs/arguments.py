"""What a program gives a job, judged as what is declared is, and in the same words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from vertex_api.kinds import Kind
from vertex_api.spelling import suggestion_text
from vertex_api.validation.jobs import validated
from vertex_api.validation.rules import Violation
from vertex_api.validation.shape import format_path, validate_shape

from ..errors import DeclarationErrors, Problem
from ..schema import formats, references, shapes
from . import adoption, dependencies, results
from .recovery import ownership

_ELSEWHERE = {
    "wait": "a Completion waits for the jobs that it is given",
    "after": "depends_on says the order, and a Completion among them that jobs have succeeded",
    "deadline": "a Completion takes deadlines",
}
_TABLES = ("secrets", references.JOBS)
Above = Mapping[str, Sequence[str] | None]
"""By name of a job whose results are used: what others may refer to of it, where that is known."""


def judged(
    kind: Kind,
    name: str,
    spec: Any,
    lifecycle: Mapping[str, Any],
    *,
    labels: Mapping[str, str],
    secrets: Mapping[str, Any],
    above: Above,
    is_known: bool,
) -> shapes.Lifecycle:
    """The lifecycle in canonical form. Raises DeclarationErrors with all that is wrong with a job.

    `labels` are those of the foundation. A spec that waits for others' outputs, one that is not `is_known`, is judged
    by the provider when they are there; here, only the references in it are.
    """
    found, misshapen = validate_shape(
        shapes.Lifecycle, {key: value for key, value in lifecycle.items() if key not in _ELSEWHERE}
    )
    problems: list[Violation] = []
    if not formats.is_name(name):
        problems.append(((), f'"{name}" must be {formats.NAME}'))
    problems += [
        (("lifecycle", key), f"is for files of declarations: in a program {instead}")
        for key, instead in _ELSEWHERE.items()
        if key in lifecycle
    ]
    problems += [(("lifecycle", *each.path), each.message) for each in misshapen]
    if is_known:
        problems += _in_spec(kind, spec, labels, is_adopted="adopt" in lifecycle)
    problems += _references(spec, secrets, above)
    if problems:
        place = f'{kind.type} "{name}"'
        raise DeclarationErrors([Problem(place, format_path(path), message) for path, message in problems])
    return cast(shapes.Lifecycle, found)


def _in_spec(kind: Kind, spec: Any, labels: Mapping[str, str], is_adopted: bool) -> Iterator[Violation]:
    canonical, broken = (adoption.validated if is_adopted else validated)(
        kind, spec, has_unresolved_references=references.is_open
    )
    yield from ((problem.path, problem.message) for problem in broken)
    if not broken and not is_adopted and "labels" in canonical:
        found = ownership.labels_broken(canonical["labels"], labels)
        yield from ((("labels", *path), message) for path, message in found)


def _references(spec: Any, secrets: Mapping[str, Any], above: Above) -> Iterator[Violation]:
    half = dict(references.unclosed(spec))
    yield from half.items()
    for path, reference in references.found(spec):
        table, _, name = reference.partition(".")
        if path in half:
            continue
        if table not in _TABLES:
            yield path, references.unknown_reference_message(reference, _TABLES)
        elif table == "secrets":
            if name not in secrets:
                yield path, f"${{{reference}}} is not among the secrets of this job{suggestion_text(name, secrets)}"
        else:
            job, result = results.split(name, above)
            if job not in above:
                yield path, f"${{{reference}}} is of none of the jobs of this job{suggestion_text(job, above)}"
            elif (known := above[job]) is not None and result not in known:
                yield path, dependencies.not_a_result(name, job, result, known)
