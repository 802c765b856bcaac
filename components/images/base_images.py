"""Which base images of a Dockerfile are not pinned: they can change under a tag that says nothing changed."""

import re
from collections.abc import Iterator, Mapping

_ARGUMENT = re.compile(r"ARG\s+(\w+)(?:=(\S+))?", re.IGNORECASE)
_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*$", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")


def unpinned(dockerfile: str, build_args: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Line and name of each base image without a digest; `scratch` and earlier stages are none.

    `ARG`s before a `FROM` count, with `build_args` in place of their defaults (Dockerfile reference, "FROM").
    """
    known: dict[str, str] = {}
    stages: set[str] = set()
    for number, line in enumerate(dockerfile.splitlines(), start=1):
        text = line.strip()
        if not stages and (argument := _ARGUMENT.match(text)):
            known[argument[1]] = build_args.get(argument[1], (argument[2] or "").strip("\"'"))
        elif found := _FROM.match(text):
            image = _VARIABLE.sub(lambda used: known.get(used[1] or used[3]) or used[2] or "", found[1])
            if image and image != "scratch" and image.lower() not in stages and "@sha256:" not in image:
                yield number, image
            stages.add((found[2] or f"{len(stages)}").lower())
