"""Expressions of Workflows (`${…}`) in place of the placeholders in the requests of a schedule."""

import json
import re
from collections.abc import Mapping
from typing import Any

from ..schema import interpolation

MAX_EXPRESSION_LENGTH = 400
"""Characters of an expression (Google's page "Quotas and limits" of Workflows)."""
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


def convert_placeholder_texts_to_expressions(value: Any, variables: Mapping[str, str]) -> Any:
    """Return a request with an expression in place of each text that has placeholders; all else stays as it is.

    `variables` has the expression of each placeholder: `{"run.id": "run"}`.
    """
    return interpolation.map_texts(value, lambda text: build_expression(text, variables) if "${" in text else text)


def build_expression(text: str, variables: Mapping[str, str]) -> str:
    """Return the expression that yields a text once its placeholders are known: `${"gs://b/" + run}`."""
    parts: list[str] = []
    for index, part in enumerate(_PLACEHOLDER.split(text)):
        if index % 2:
            parts.append(variables[part])
        elif part:
            parts.append(quote_text(part))
    return f"${{{' + '.join(parts)}}}"


def find_unknown_placeholder_texts(text: str, variables: Mapping[str, str]) -> list[str]:
    """Return what Workflows would evaluate in a text although it is no placeholder: each `${` that is not known."""
    rest = _PLACEHOLDER.sub(lambda match: "" if match[1] in variables else match[0], text)
    return [rest[start.start() :][:_SHOWN] for start in re.finditer(r"\$\{", rest)]


def quote_text(text: str) -> str:
    """Return a text as a literal in an expression."""
    return json.dumps(text, ensure_ascii=False)


_SHOWN = 40
