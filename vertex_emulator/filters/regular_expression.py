"""The regular expressions of log filters: matched as RE2 does, in time that grows with the text only."""

from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

from vertex_emulator.errors import InvalidFilter


def matches_anywhere(pattern: str, text: str) -> bool:
    """Return whether a regular expression matches a part of a text. Raises InvalidFilter."""
    return compile_pattern_as_pydantic_validator(pattern).isinstance_python(text)


@lru_cache(maxsize=100)
def compile_pattern_as_pydantic_validator(pattern: str) -> SchemaValidator:
    """Return pydantic's validator of texts with the pattern; its engine follows RE2. Raises InvalidFilter."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InvalidFilter(f"{pattern!r} is not a regular expression: {reason}") from error
