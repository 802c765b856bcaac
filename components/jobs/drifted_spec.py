"""A declared spec with the values that have drifted: those in which the service holds other ones than declared."""

from collections.abc import Mapping
from typing import Any

from ..schema import interpolation
from ..schema.interpolation import Tables


def copy_declared_with_differing_actual_values(declared: Any, actual: Any, reference_tables: Tables) -> Any:
    """Return the declared fields as the service holds them: equal to `declared` unless something in it differs.

    Fields that only the service has (its defaults) are left out. References in `declared` stay where the service holds
    their values, which `reference_tables` has by table (`secrets`, `jobs`) and name.
    """
    if isinstance(declared, Mapping) and isinstance(actual, Mapping):
        fields = {
            key: copy_declared_with_differing_actual_values(value, actual.get(key), reference_tables)
            for key, value in declared.items()
        }
        return {key: value for key, value in fields.items() if value is not None}
    if isinstance(declared, list) and isinstance(actual, list) and len(declared) == len(actual):
        return [
            copy_declared_with_differing_actual_values(*pair, reference_tables)
            for pair in zip(declared, actual, strict=True)
        ]
    if is_equal_after_resolving_references(declared, actual, reference_tables):
        return declared
    return replace_secrets_with_references(actual, reference_tables)


def is_equal_after_resolving_references(declared: Any, actual: Any, reference_tables: Tables) -> bool:
    """Return whether a declared value equals, as a whole, the service's: defaults inside it count as differences."""
    if actual is None:
        # Proto JSON leaves zeros out; the zero of an enum is its name for "not specified".
        return not declared or str(declared).endswith("_UNSPECIFIED")
    submitted = interpolation.expand(declared, reference_tables)
    # The service ends the URI of a folder with a slash (discovery document, GcsDestination).
    return bool(actual == submitted or (isinstance(submitted, str) and actual == f"{submitted}/"))


def replace_secrets_with_references(value: Any, reference_tables: Tables) -> Any:
    """Return a value with references in place of the values of secrets."""
    longest_first = sorted(reference_tables.get("secrets", {}).items(), key=lambda item: -len(item[1]))

    def replace_in_text(text: str) -> str:
        for name, secret in longest_first:
            text = text.replace(secret, f"${{secrets.{name}}}") if secret else text
        return text

    return interpolation.map_texts(value, replace_in_text)
