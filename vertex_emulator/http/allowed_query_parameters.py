"""Query parameters: those of the API's methods, and those that every Google API accepts."""

from collections.abc import Mapping

from pydantic.alias_generators import to_camel

from vertex_emulator.errors import ApiError

LIST_PARAMETERS = frozenset({"filter", "pageSize", "pageToken", "readMask"})
ORDERED_LIST_PARAMETERS = LIST_PARAMETERS | {"orderBy"}
OPERATION_LIST_PARAMETERS = frozenset({"filter", "pageSize", "pageToken", "returnPartialSuccess"})
UPDATE_PARAMETERS = frozenset({"updateMask"})
WAIT_PARAMETERS = frozenset({"timeout"})
_SYSTEM_PARAMETERS = frozenset(
    {"$alt", "alt", "$.xgafv", "access_token", "callback", "fields", "key", "oauth_token", "prettyPrint"}
    | {"quotaUser", "uploadType", "upload_protocol", "$prettyPrint", "$apiVersion"}
)


def get_checked_camel_case_query(query: Mapping[str, str], allowed: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return a method's query parameters by camelCase name, without those that every Google API accepts.

    `allowed` are the names that the method has, in camelCase. Raises ApiError for any other.
    """
    parameters = {}
    for name, value in query.items():
        if name in _SYSTEM_PARAMETERS:
            continue
        camel = to_camel(name) if "_" in name else name
        if camel not in allowed:
            # The wording of Google's front end.
            message = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
            raise ApiError("INVALID_ARGUMENT", message, [(name, "unknown query parameter")])
        parameters[camel] = value
    return parameters
