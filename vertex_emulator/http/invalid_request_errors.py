"""The service's errors for requests with invalid fields, and for names of resources that do not exist."""

import re
from collections.abc import Sequence

from vertex_api.errors import shown_problems
from vertex_api.messages import show_path
from vertex_api.validation.shape import FieldProblem
from vertex_emulator.errors import ApiError


def build_not_found_error(resource_type: str, name: str) -> ApiError:
    """Build the service's error for a resource that does not exist, such as a CustomJob."""
    return ApiError("NOT_FOUND", f'The {resource_type} "{name}" does not exist.')


def build_malformed_name_error(resource_type: str) -> ApiError:
    """Build the service's error for a name that no resource of this type can have."""
    return build_invalid_argument_error([FieldProblem(("name",), f"Invalid {resource_type} resource name.")])


def build_invalid_argument_error(problems: Sequence[FieldProblem], headline: str = "") -> ApiError:
    """Build the service's error for the problems of a request: `List of found errors:\\t1.Field: a.b; Message: c`.

    `headline` is a text that comes before them.
    """
    shown, more = shown_problems(problems)
    pairs = [(_format_field_path(problem), problem.message) for problem in shown]
    texts = [f"{i}.Field: {field}; Message: {message}" for i, (field, message) in enumerate(pairs, 1)]
    message = "\t".join(["List of found errors:", *texts, *([more] if more else []), ""])
    return ApiError("INVALID_ARGUMENT", f"{headline}. {message}" if headline else message, pairs)


def _format_field_path(problem: FieldProblem) -> str:
    """Render the path of a field in the form of the service's errors; an unknown field as it was spelt."""
    if not problem.is_unknown_field:
        return to_snake_case(problem.place)
    *parents, name = problem.path
    return ".".join(filter(None, [to_snake_case(show_path(tuple(parents))), show_path((name,))]))


def to_snake_case(field_path: str) -> str:
    """Convert `jobSpec.workerPoolSpecs[0].x` to the form of the service's errors, `job_spec.worker_pool_specs[0].x`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match.group(1).lower(), field_path)
