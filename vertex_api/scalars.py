"""Scalar types of the training API's JSON, as `vertex_api.types` uses them.

Each accepts what Google's own clients send (proto3's JSON mapping: numbers as strings, enums as numbers) and returns
one canonical value, so that equal specs compare, hash and preview as equal.
"""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, PydanticOmit, core_schema

_DURATION = re.compile(r"(-?)0*([0-9]+)(?:\.([0-9]{1,9}))?s")
_MAX_SECONDS = 315_576_000_000
_TIMESTAMP = re.compile(r"([0-9-]{10}[Tt][0-9:]{8})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})")
_MAX_INTEGERS = {32: 2**31 - 1, 64: 2**63 - 1}

# Discovery document, StudySpec.algorithm: unspecified is the default; Google's page on tuning: Bayesian optimization.
_DEFAULT_HINTS = {"ALGORITHM_UNSPECIFIED": "; leave it out for Bayesian optimization, the default"}

Value = TypeVar("Value")


def quote(value: object) -> str:
    """Return a value as error messages quote it: JSON-like, at most 60 characters."""
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Mapping | list):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _error(value: object, message: str) -> PydanticCustomError:
    return PydanticCustomError("scalar", "{message}", {"message": f"{quote(value)} {message}"})


def _integer(bits: int) -> BeforeValidator:
    def parse_integer(value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            raise _error(value, "is not a whole number")
        if abs(value) > _MAX_INTEGERS[bits]:
            raise _error(value, f"does not fit into {bits} bits")
        return int(value)

    return BeforeValidator(parse_integer)


def _double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _error(value, "is not a number")
    try:
        number = float(value)
    except ValueError:
        raise _error(value, "is not a number") from None
    except OverflowError:
        raise _error(value, "is too large for a number") from None
    if not math.isfinite(number):
        raise _error(number, "is not a finite number")
    return number


def _float(value: object) -> float | str:
    """Return a number, or one of the texts of proto3's JSON mapping for those that JSON lacks."""
    return str(value) if value in ("NaN", "Infinity", "-Infinity") else _double(value)


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    raise PydanticCustomError("scalar", "{message}", {"message": not_a_string(value)})


def not_a_string(value: object) -> str:
    """Return the message for a value that should be a string."""
    if isinstance(value, Mapping | list):
        return f"{quote(value)} is not a string"
    if value is None:
        return 'null is not a string; write "" for an empty text, or "null" in quotes'
    return f'{quote(value)} is not a string; write "{quote(value)}" in quotes'


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise _error(value, "is not true or false")
    return value


def _duration(value: object) -> str:
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise _error(value, 'is not a duration; write seconds followed by s, such as "3600s"')
    sign, seconds, fraction = match.groups(default="")
    if len(seconds) > 12 or int(seconds) > _MAX_SECONDS:
        raise _error(value, f'is longer than the longest duration, "{_MAX_SECONDS}s"')
    return f"{sign}{seconds}{_fraction(fraction)}s"


def _fraction(digits: str) -> str:
    """Return a fraction of seconds as proto JSON writes it, with no, three, six or nine decimals."""
    digits = digits.rstrip("0")
    digits += "0" * (-len(digits) % 3)
    return f".{digits}" if digits else ""


def to_seconds(duration: str) -> float:
    """Return the seconds of a canonical Duration."""
    return float(duration.removesuffix("s"))


def _timestamp(value: object) -> str:
    match = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    try:
        moment = datetime.fromisoformat(match[1] + match[3].upper()).astimezone(UTC) if match else None
    except (ValueError, OverflowError):
        moment = None
    if not match or not moment:
        raise _error(value, 'is not a time; write it as "2026-01-31T12:00:00Z"')
    return f"{moment:%Y-%m-%dT%H:%M:%S}{_fraction(match[2] or '')}Z"


class Numbered:
    """The numbers of an enum's names in the API's protos, in the order of the names. Clients may send either."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers

    def by_name(self, names: Any) -> dict[str, int]:
        """Return the number of each name of a `Literal`."""
        return dict(zip(get_args(names), self._numbers, strict=True))

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        names = {number: name for name, number in self.by_name(source).items()}

        def normalize_enum_name(value: object) -> str:
            if isinstance(value, str) and value in names.values():
                return value
            if isinstance(value, int | float) and not isinstance(value, bool) and value in names:
                return names[int(value)]
            choices = ", ".join(name for name in names.values() if not name.endswith("_UNSPECIFIED"))
            message = f"{quote(value)} is not one of {choices}{_DEFAULT_HINTS.get(next(iter(names.values())), '')}"
            raise PydanticCustomError("enum", "{message}", {"message": message, "names": list(names.values())})

        return core_schema.no_info_before_validator_function(normalize_enum_name, handler(source))


def _output_only(_value: object, info: ValidationInfo) -> object:
    if info.context and info.context.get("output_only") == "drop":
        raise PydanticOmit
    raise PydanticCustomError("output_only", "is set by the service; remove it")


OutputOnly = Annotated[Value, BeforeValidator(_output_only), Field(json_schema_extra={"readOnly": True})]
"""A field that only the service sets: rejected in a declaration, ignored in a request (Google's AIP-203)."""

String = Annotated[str, BeforeValidator(_string)]
Boolean = Annotated[bool, BeforeValidator(_boolean)]
Double = Annotated[float, BeforeValidator(_double)]
Float = Annotated[float | str, BeforeValidator(_float)]
"""A number that may be "NaN", "Infinity" or "-Infinity"."""
Int32 = Annotated[int, _integer(32)]
Int64 = Annotated[int, _integer(64)]
Duration = Annotated[str, BeforeValidator(_duration)]
"""Seconds with up to nine decimals and an s: "3600s"."""
Timestamp = Annotated[str, BeforeValidator(_timestamp)]
"""RFC 3339: "2026-01-31T12:00:00Z"."""
