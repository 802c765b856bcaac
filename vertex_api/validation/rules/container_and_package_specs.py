"""Rules for the task of a worker pool: ContainerSpec and PythonPackageSpec."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vertex_api.validation.rules.text_formats import C_IDENTIFIER, IMAGE, MODULE, STORAGE_URI
from vertex_api.validation.rules.violation_type import KeyPath, Violation

_MAX_ENTRIES = 100
_MAX_CHARACTERS = 100_000


def find_container_and_package_violations(pool: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Find violations of the rules for the task of a WorkerPoolSpec."""
    if "containerSpec" in pool:
        yield from IMAGE.find_required_field_violations(pool["containerSpec"], "imageUri", (*at, "containerSpec"))
        yield from _find_argument_and_environment_violations(pool["containerSpec"], (*at, "containerSpec"))
    if "pythonPackageSpec" in pool:
        yield from _find_package_violations(pool["pythonPackageSpec"], (*at, "pythonPackageSpec"))
        yield from _find_argument_and_environment_violations(pool["pythonPackageSpec"], (*at, "pythonPackageSpec"))


def _find_package_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Discovery document, PythonPackageSpec."""
    yield from IMAGE.find_required_field_violations(spec, "executorImageUri", at)
    yield from MODULE.find_required_field_violations(spec, "pythonModule", at)
    uris = spec["packageUris"]
    if len(uris) > _MAX_ENTRIES:
        yield (*at, "packageUris"), f"has {len(uris)} entries; at most {_MAX_ENTRIES} are allowed"
    for index, uri in enumerate(uris):
        if not uri:
            yield (*at, "packageUris", index), "is empty"
        yield from STORAGE_URI.find_violations_if_set(uri, (*at, "packageUris", index))


def _find_argument_and_environment_violations(spec: Mapping[str, Any], at: KeyPath) -> Iterator[Violation]:
    """Length of the arguments: Google's page on configuring container settings."""
    total = sum(map(len, spec.get("args", ())))
    if total > _MAX_CHARACTERS:
        yield (*at, "args"), f"has {total} characters in total; at most {_MAX_CHARACTERS} are allowed"
    yield from find_environment_violations(spec.get("env", ()), _MAX_ENTRIES, (*at, "env"))


def find_environment_violations(
    entries: Sequence[Mapping[str, Any]], max_entries: int, at: KeyPath
) -> Iterator[Violation]:
    """Find violations of the rules for environment variables: names are C identifiers, and values are required and not
    empty. Sources: discovery document, EnvVar; the service's error, quoted in public (kubeflow/pipelines#10111)."""
    if len(entries) > max_entries:
        yield at, f"has {len(entries)} entries; at most {max_entries} are allowed"
    for index, entry in enumerate(entries):
        if not C_IDENTIFIER.matches(entry["name"]):
            yield (*at, index, "name"), C_IDENTIFIER.build_mismatch_message(entry["name"])
        if not entry.get("value"):
            yield (*at, index, "value"), "is required, and not empty; leave the variable out where it has no value"
