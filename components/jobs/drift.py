"""What a job that exists says about the job that was declared."""

from collections.abc import Mapping
from typing import Any

from ..schema import references
from ..schema.references import Tables


def declared_part(declared: Any, actual: Any, tables: Tables) -> Any:
    """The declared spec as the service holds it: equal to `declared` unless something in it differs.

    Fields that only the service has (its defaults) are left out, and what was filled in from `tables`, `secrets` and
    `jobs`, keeps its reference.
    """
    if isinstance(declared, Mapping) and isinstance(actual, Mapping):
        parts = {key: declared_part(value, actual.get(key), tables) for key, value in declared.items()}
        return {key: part for key, part in parts.items() if part is not None}
    if isinstance(declared, list) and isinstance(actual, list) and len(declared) == len(actual):
        return [declared_part(*pair, tables) for pair in zip(declared, actual, strict=True)]
    return declared if is_same(declared, actual, tables) else hidden(actual, tables.get("secrets", {}))


def is_same(declared: Any, actual: Any, tables: Tables) -> bool:
    """Whether a declared value is, as a whole, what the service holds: defaults inside of it count as differences."""
    if actual is None:
        # Zeros are left out of proto JSON; that of an enum is its name for "not said".
        return not declared or str(declared).endswith("_UNSPECIFIED")
    sent = submitted(declared, tables)
    # The service ends the URI of a folder with a slash (discovery document, GcsDestination).
    return bool(actual == sent or (isinstance(sent, str) and actual == f"{sent}/"))


def submitted(spec: Any, tables: Tables) -> Any:
    """The spec as it is sent: with the values of `tables`, `secrets` and `jobs`, in place of references to them."""
    return references.resolve_and_unescape(spec, tables)


def hidden(actual: Any, secrets: Mapping[str, str]) -> Any:
    """With references in place of the values of secrets: what differs is shown, and they are not."""
    longest_first = sorted(secrets.items(), key=lambda item: -len(item[1]))

    def hidden(text: str) -> str:
        for name, value in longest_first:
            text = text.replace(value, f"${{secrets.{name}}}") if value else text
        return text

    return references.map_texts(actual, hidden)
