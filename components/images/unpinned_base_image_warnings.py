"""Warnings of base images that are not pinned: they can change under a tag that stays the same."""

import re
from collections.abc import Iterator, Mapping

import pulumi

from .build_context import BuildContext

_ARGUMENT = re.compile(r"ARG\s+(\w+)(?:=(\S+))?", re.IGNORECASE)
_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")


def warn_of_unpinned_bases(image_name: str, context: BuildContext, resource: pulumi.Resource) -> None:
    """Warn of base images that may change without a new tag of the image that is built from this context."""
    for line, base in find_line_numbers_and_unpinned_bases(context.dockerfile_text, context.build_args):
        pulumi.warn(
            f"{context.render_base_image_location(image_name, line)}: FROM {base} is not pinned: another build of the "
            f"same files may give another image; name its digest, {base}@sha256:…",
            resource,
        )


def find_line_numbers_and_unpinned_bases(
    dockerfile_text: str, build_args: Mapping[str, str]
) -> Iterator[tuple[int, str]]:
    """Yield line number and name of each base image without a digest, except `scratch` and earlier stages.

    `ARG`s before a `FROM` count, with `build_args` in place of their defaults (Dockerfile reference, "FROM").
    """
    variables: dict[str, str] = {}
    stages: set[str] = set()
    for number, text in enumerate(map(str.strip, dockerfile_text.splitlines()), start=1):
        if not stages and (argument := _ARGUMENT.match(text)):
            variables[argument[1]] = build_args.get(argument[1], (argument[2] or "").strip("\"'"))
        elif instruction := _FROM.match(text):
            image = _VARIABLE.sub(
                lambda variable: variables.get(variable[1] or variable[3]) or variable[2] or "", instruction[1]
            )
            if image and image != "scratch" and image.lower() not in stages and "@sha256:" not in image:
                yield number, image
            stages.add((instruction[2] or f"{len(stages)}").lower())
