"""Query parameters: which ones a method knows, and those that all of Google's methods know."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic.alias_generators import to_camel

from vertex_emulator.errors import ApiError

LIST = frozenset({"filter", "pageSize", "pageToken", "readMask"})
LIST_IN_ORDER = LIST | {"orderBy"}
LIST_OPERATIONS = frozenset({"filter", "pageSize", "pageToken", "returnPartialSuccess"})
WAIT = frozenset({"timeout"})
_SYSTEM = frozenset(
    {"$alt", "alt", "$.xgafv", "access_token", "callback", "fields", "key", "oauth_token", "prettyPrint"}
    | {"quotaUser", "uploadType", "upload_protocol", "$prettyPrint", "$apiVersion"}
)


def check(parameters: Mapping[str, str], known: frozenset[str] = frozenset()) -> dict[str, str]:
    """The parameters of a method by their camelCase names. Raises ApiError for one that the method has not."""
    found = {}
    for name, value in parameters.items():
        if name in _SYSTEM:
            continue
        camel = to_camel(name) if "_" in name else name
        if camel not in known:
            # Google's front end refuses names that the method has not, in these words.
            message = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
            raise ApiError("INVALID_ARGUMENT", message, [(name, "unknown query parameter")])
        found[camel] = value
    return found
