"""Filters of lists and logs in the grammar of AIP-160, which Cloud Logging's query language shares."""

import fnmatch
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

from vertex_emulator.errors import InvalidFilter
from vertex_emulator.times import parse_time

FUNCTIONS = ("in_context",)
"""The functions of one text that a filter may call; `f("x")` is parsed as the comparison `f:x`."""
PATTERN_OPERATORS = ("=~", "!~")
"""The operators whose value is a regular expression."""
_MAX_DEPTH = 50
_NUMBER = re.compile(r"-?\d{1,400}(\.\d{1,400})?([eE][+-]?\d{1,3})?", re.ASCII)


class Filter:
    """A condition on the texts of a resource's fields: a comparison, or And, Or and Not of others."""

    def matches(self, text: Callable[[str], str | None]) -> bool:
        """Return whether a resource matches; `text` returns the text of a field path, None if it is absent."""
        match self:
            case And(terms):
                return all(term.matches(text) for term in terms)
            case Or(terms):
                return any(term.matches(text) for term in terms)
            case Not(term):
                return not term.matches(text)
            case Comparison(field, operator, value):
                return _holds(text(field), operator, value)
        raise NotImplementedError

    def comparisons(self) -> "Iterator[Comparison]":
        """Yield every comparison, from left to right."""
        match self:
            case And(terms) | Or(terms):
                for term in terms:
                    yield from term.comparisons()
            case Not(term):
                yield from term.comparisons()
            case Comparison():
                yield self

    def replace(self, change: "Callable[[Comparison], Comparison]") -> "Filter":
        """Return the filter with each comparison replaced by what `change` returns for it."""
        match self:
            case And(terms) | Or(terms):
                return type(self)(tuple(term.replace(change) for term in terms))
            case Not(term):
                return Not(term.replace(change))
            case Comparison():
                return change(self)
        raise NotImplementedError

    def required(self, field: str) -> str | None:
        """Return the value that a field must equal for anything to match, None if the filter does not demand one."""
        match self:
            case And(terms):
                return next((value for term in terms if (value := term.required(field)) is not None), None)
            case Comparison(compared, "=", value) if compared == field:
                return value
        return None


@dataclass(frozen=True)
class Comparison(Filter):
    """`field operator value`; `:` is "has", with `*` as a wildcard, `=~` and `!~` have a regular expression."""

    field: str
    operator: str
    value: str


@dataclass(frozen=True)
class Not(Filter):
    """The negation of a term."""

    term: Filter


@dataclass(frozen=True)
class And(Filter):
    """Terms that must all match; without terms, everything matches."""

    terms: tuple[Filter, ...]


@dataclass(frozen=True)
class Or(Filter):
    """Terms of which at least one must match."""

    terms: tuple[Filter, ...]


def _holds(actual: str | None, operator: str, expected: str) -> bool:
    if operator in ("!=", "!~"):
        return not _holds(actual, "=" if operator == "!=" else "=~", expected)
    if actual is None:
        return False
    if operator == ":":
        return fnmatch.fnmatchcase(actual, re.sub(r"[\[?]", lambda special: f"[{special[0]}]", expected))
    if operator == "=~":
        return compile_pattern(expected).isinstance_python(actual)
    order = _order(actual, expected, is_equality=operator == "=")
    return {"=": order == 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator]


def _order(actual: str, expected: str, *, is_equality: bool) -> int:
    """Compare two texts: as times or as numbers if both are, else as texts. Return -1, 0 or 1.

    An equality is never one of numbers: the labels `1e2` and `100` are two.
    """
    times = parse_time(actual), parse_time(expected)
    if times[0] is not None and times[1] is not None:
        return (times[0] > times[1]) - (times[0] < times[1])
    if not is_equality and _NUMBER.fullmatch(actual) and _NUMBER.fullmatch(expected):
        return int(Decimal(actual).compare(Decimal(expected)))
    return (actual > expected) - (actual < expected)


@lru_cache(maxsize=100)
def compile_pattern(pattern: str) -> SchemaValidator:
    """Return a validator of the texts of which a part matches a regular expression. Raises InvalidFilter.

    pydantic's engine matches as RE2 does, in time that grows with the text only.
    """
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InvalidFilter(f"{pattern!r} is not a regular expression: {reason}") from error


def parse(text: str) -> Filter:
    """Parse a filter; everything matches an empty one. Raises InvalidFilter.

    OR binds tighter than AND, and terms side by side are joined by AND (AIP-160, and Cloud Logging's query language).
    Quoted segments of field names lose their quotes.
    """
    tokens = list(_tokenize(text))
    return _Parser(text, tokens).parse() if tokens else And(())


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<punctuation>[()])
      | (?P<operator>=~|!~|<=|>=|!=|=|<|>|:)
      | (?P<quoted>"(?:[^"\\]|\\.)*")
      | (?P<word>[^\s()<>=!:"]+)
    )""",
    re.VERBOSE,
)


def _tokenize(text: str) -> Iterator[tuple[str, str, int]]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            rest = text[position : position + 20]
            raise InvalidFilter(f"cannot read the filter at character {position + 1}: {rest!r}")
        yield match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)
        position = match.end()


class _Parser:
    """A recursive-descent parser over tokens: (kind, text, position)."""

    def __init__(self, text: str, tokens: list[tuple[str, str, int]]) -> None:
        self._text = text
        self._tokens = tokens
        self._index = 0

    def parse(self) -> Filter:
        condition = self._conjunction(0)
        if self._index < len(self._tokens):
            raise self._lacks("the end")
        return condition

    def _conjunction(self, depth: int) -> Filter:
        terms = [self._disjunction(depth)]
        while self._next not in (None, ("punctuation", ")")):
            self._skip("word", "AND")
            terms.append(self._disjunction(depth))
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def _disjunction(self, depth: int) -> Filter:
        terms = [self._term(depth)]
        while self._skip("word", "OR"):
            terms.append(self._term(depth))
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def _term(self, depth: int) -> Filter:
        if depth > _MAX_DEPTH:
            raise InvalidFilter(f"the filter nests more than {_MAX_DEPTH} deep")
        if self._skip("word", "NOT") or self._skip_minus():
            return Not(self._term(depth + 1))
        if self._skip("punctuation", "("):
            inner = self._conjunction(depth + 1)
            self._take("punctuation", ")")
            return inner
        return self._comparison()

    def _skip_minus(self) -> bool:
        """Skip a leading `-`, which is another way to write NOT; return whether there was one."""
        kind, text = self._next or ("", "")
        if kind != "word" or not text.startswith("-"):
            return False
        start = self._tokens[self._index][2]
        self._tokens[self._index : self._index + 1] = [("word", text[1:], start + 1)] if text != "-" else []
        return True

    def _comparison(self) -> Comparison:
        field = self._field()
        if field in FUNCTIONS and self._skip("punctuation", "("):
            argument = _unquote(self._take("quoted"))
            self._take("punctuation", ")")
            return Comparison(field, ":", argument)
        operator = self._take("operator")
        kind, value = self._take_any("a value")
        if kind == "quoted":
            # In a regular expression, a backslash that escapes neither itself nor a quote stays.
            escaped = r"\\([\\\"])" if operator in PATTERN_OPERATORS else r"\\(.)"
            return Comparison(field, operator, _unquote(value, escaped))
        if kind != "word":
            raise self._lacks(f"a value after {field}{operator}", back=1)
        # An unquoted time contains colons, which are operators elsewhere.
        while (adjacent := self._take_adjacent()) is not None:
            value += adjacent
        return Comparison(field, operator, value)

    def _field(self) -> str:
        kind, text = self._take_any("a field name")
        if kind not in ("word", "quoted") or text in ("AND", "OR"):
            raise self._lacks("a field name", back=1)
        field = _unquote(text) if kind == "quoted" else text
        while field.endswith(".") and (self._next or ("",))[0] == "quoted":
            field += _unquote(self._take("quoted"))
            if (self._next or ("", ""))[1].startswith(".") and (rest := self._take_adjacent()) is not None:
                field += rest
        return field

    def _take_adjacent(self) -> str | None:
        """Take the next token if no space precedes it: the rest of an unquoted value such as a time."""
        if self._index >= len(self._tokens):
            return None
        kind, text, start = self._tokens[self._index]
        _, last, last_start = self._tokens[self._index - 1]
        if last_start + len(last) != start or not (kind == "word" or (kind, text) == ("operator", ":")):
            return None
        self._index += 1
        return text

    @property
    def _next(self) -> tuple[str, str] | None:
        return self._tokens[self._index][:2] if self._index < len(self._tokens) else None

    def _skip(self, kind: str, text: str) -> bool:
        is_next = self._next == (kind, text)
        self._index += is_next
        return is_next

    def _take(self, kind: str, text: str | None = None) -> str:
        actual_kind, value = self._take_any(text or f"an {kind}")
        if actual_kind != kind or (text is not None and value != text):
            raise self._lacks(text or f"an {kind}", back=1)
        return value

    def _take_any(self, missing: str) -> tuple[str, str]:
        token = self._next
        if token is None:
            raise self._lacks(missing)
        self._index += 1
        return token

    def _lacks(self, missing: str, back: int = 0) -> InvalidFilter:
        index = self._index - back
        where = f"at {self._text[self._tokens[index][2] :][:20]!r}" if index < len(self._tokens) else "at its end"
        return InvalidFilter(f"the filter lacks {missing} {where}")


def _unquote(text: str, escaped: str = r"\\(.)") -> str:
    return re.sub(escaped, r"\1", text[1:-1])
