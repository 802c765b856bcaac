"""`$(VAR)` references in a container's env, command and args, with Kubernetes' rules."""

import re
from collections.abc import Iterable, Mapping

_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")


def expand_references(text: str, environment: Mapping[str, str]) -> str:
    """Expand `$(NAME)` to its value; an unknown name stays as written and `$$(NAME)` becomes `$(NAME)`.

    Kubernetes reads left to right and makes `$$` one `$` wherever it stands
    (its documentation on dependent environment variables; Vertex's containers run under it).
    """

    def get_value(match: re.Match[str]) -> str:
        return "$" if match[1] is None else environment.get(match[1], match[0])

    return _REFERENCE.sub(get_value, text)


def escape_references(text: str) -> str:
    """Escape text so that `expand_references` returns it unchanged."""
    return text.replace("$", "$$")


def expand_environment(service_variables: Mapping[str, str], user_env: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the service's variables, then the user's in order, each expanded with those before it."""
    environment = dict(service_variables)
    for name, text in user_env:
        environment[name] = expand_references(text, environment)
    return environment
