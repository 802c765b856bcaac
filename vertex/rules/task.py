"""Rules for what the replicas of a pool run: ContainerSpec and PythonPackageSpec."""

from collections.abc import Iterator, Mapping
from typing import Any

from vertex.rules.finding import Finding, KeyPath, unset
from vertex.rules.form import C_IDENTIFIER, STORAGE_URI

_MOST_ENTRIES = 100
_MOST_CHARACTERS = 100_000


def broken(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Finding]:
    """The rules for the tasks of a pool."""
    if "containerSpec" in pool:
        yield from unset(pool["containerSpec"], ["imageUri"], (*at, "containerSpec"))
        yield from _arguments(pool["containerSpec"], (*at, "containerSpec"))
    if "pythonPackageSpec" in pool:
        yield from _package(pool["pythonPackageSpec"], (*at, "pythonPackageSpec"))
        yield from _arguments(pool["pythonPackageSpec"], (*at, "pythonPackageSpec"))


def _package(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Finding]:
    """Discovery document, PythonPackageSpec."""
    yield from unset(spec, ["executorImageUri", "pythonModule"], at)
    uris = spec["packageUris"]
    if len(uris) > _MOST_ENTRIES:
        yield (*at, "packageUris"), f"has {len(uris)} entries; at most {_MOST_ENTRIES} are allowed"
    for index, uri in enumerate(uris):
        if not uri:
            yield (*at, "packageUris", index), "is empty"
        yield from STORAGE_URI.broken(uri, (*at, "packageUris", index))


def _arguments(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Finding]:
    """Discovery document, EnvVar: names are C identifiers, at most 100 of them. Length of the arguments: Google's page
    on configuring container settings."""
    total = sum(map(len, spec.get("args", ())))
    if total > _MOST_CHARACTERS:
        yield (*at, "args"), f"has {total} characters in total; at most {_MOST_CHARACTERS} are allowed"
    entries = spec.get("env", ())
    if len(entries) > _MOST_ENTRIES:
        yield (*at, "env"), f"has {len(entries)} entries; at most {_MOST_ENTRIES} are allowed"
    for index, entry in enumerate(entries):
        if not C_IDENTIFIER.fits(entry["name"]):
            yield (*at, "env", index, "name"), C_IDENTIFIER.refusal(entry["name"])
