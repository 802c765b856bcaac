"""The parser of a filter's text, in the grammar of Google's AIP-160."""

import re
from collections.abc import Iterator

from vertex_emulator.errors import InvalidFilter
from vertex_emulator.filters.expression_tree import REGULAR_EXPRESSION_OPERATORS, And, Comparison, Filter, Not, Or

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<punctuation>[()])
      | (?P<operator>=~|!~|<=|>=|!=|=|<|>|:)
      | (?P<quoted>"(?:[^"\\]|\\.)*")
      | (?P<word>[^\s()<>=!:"]+)
    )""",
    re.VERBOSE,
)
_MAX_DEPTH = 50


def parse_filter_unless_empty(text: str) -> Filter | None:
    """Parse a filter; return None for an empty one.

    OR binds tighter than AND, and terms side by side are joined by AND (AIP-160, and Cloud Logging's query
    language). Quoted segments of field names lose their quotes. Raises InvalidFilter.
    """
    tokens = list(_tokenize(text))
    if not tokens:
        return None
    parser = _Parser(text, tokens)
    condition = parser.parse_conjunction(0)
    parser.raise_unless_at_end()
    return condition


def _tokenize(text: str) -> Iterator[tuple[str, str, int]]:
    position = 0
    end = len(text.rstrip())
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

    def parse_conjunction(self, depth: int) -> Filter:
        terms = [self.parse_disjunction(depth)]
        while self._peek_token_or_none() is not None and self._peek_token_or_none() != ("punctuation", ")"):
            if self._peek_token_or_none() == ("word", "AND"):
                self._index += 1
            terms.append(self.parse_disjunction(depth))
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def parse_disjunction(self, depth: int) -> Filter:
        terms = [self.parse_term(depth)]
        while self._peek_token_or_none() == ("word", "OR"):
            self._index += 1
            terms.append(self.parse_term(depth))
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def parse_term(self, depth: int) -> Filter:
        if depth > _MAX_DEPTH:
            raise InvalidFilter(f"the filter nests more than {_MAX_DEPTH} deep")
        if self._peek_token_or_none() == ("word", "NOT"):
            self._index += 1
            return Not(self.parse_term(depth + 1))
        if self._skip_minus_if_present():
            return Not(self.parse_term(depth + 1))
        if self._peek_token_or_none() == ("punctuation", "("):
            self._index += 1
            inner = self.parse_conjunction(depth + 1)
            self._take_token_text_or_raise("punctuation", ")")
            return inner
        return self.parse_comparison()

    def _skip_minus_if_present(self) -> bool:
        """Skip a leading `-`, which is another way to write NOT; return whether there was one."""
        kind, text = self._peek_token_or_none() or ("", "")
        if kind != "word" or not text.startswith("-"):
            return False
        start = self._tokens[self._index][2]
        self._tokens[self._index : self._index + 1] = [("word", text[1:], start + 1)] if text != "-" else []
        return True

    def parse_comparison(self) -> Comparison:
        field = self._parse_field_name()
        operator = self._take_token_text_or_raise("operator")
        kind, value = self._take_next_token_or_raise("a value")
        if kind == "quoted":
            is_pattern = operator in REGULAR_EXPRESSION_OPERATORS
            return Comparison(field, operator, _unquote_pattern(value) if is_pattern else _unquote(value))
        if kind != "word":
            raise self._build_missing_token_error(f"a value after {field}{operator}", tokens_back=1)
        # An unquoted time contains colons, which are operators elsewhere.
        while (adjacent := self._take_adjacent_token_or_none()) is not None:
            value += adjacent
        return Comparison(field, operator, value)

    def raise_unless_at_end(self) -> None:
        if self._index < len(self._tokens):
            raise self._build_missing_token_error("the end")

    def _parse_field_name(self) -> str:
        kind, text = self._take_next_token_or_raise("a field name")
        if kind not in ("word", "quoted") or text in ("AND", "OR"):
            raise self._build_missing_token_error("a field name", tokens_back=1)
        field = _unquote(text) if kind == "quoted" else text
        while field.endswith(".") and (self._peek_token_or_none() or ("",))[0] == "quoted":
            field += _unquote(self._take_token_text_or_raise("quoted"))
        return field

    def _take_adjacent_token_or_none(self) -> str | None:
        """Take the next token if no space precedes it: the rest of an unquoted value such as a time."""
        if self._index >= len(self._tokens):
            return None
        kind, text, start = self._tokens[self._index]
        _, last, last_start = self._tokens[self._index - 1]
        if last_start + len(last) != start or not (kind == "word" or (kind, text) == ("operator", ":")):
            return None
        self._index += 1
        return text

    def _peek_token_or_none(self) -> tuple[str, str] | None:
        return self._tokens[self._index][:2] if self._index < len(self._tokens) else None

    def _take_next_token_or_raise(self, missing_description: str) -> tuple[str, str]:
        token = self._peek_token_or_none()
        if token is None:
            raise self._build_missing_token_error(missing_description)
        self._index += 1
        return token

    def _take_token_text_or_raise(self, kind: str, text: str | None = None) -> str:
        actual_kind, value = self._take_next_token_or_raise(text or f"an {kind}")
        if actual_kind != kind or (text is not None and value != text):
            raise self._build_missing_token_error(text or f"an {kind}", tokens_back=1)
        return value

    def _build_missing_token_error(self, missing_description: str, tokens_back: int = 0) -> InvalidFilter:
        index = self._index - tokens_back
        where = f"at {self._text[self._tokens[index][2] :][:20]!r}" if index < len(self._tokens) else "at its end"
        return InvalidFilter(f"the filter lacks {missing_description} {where}")


def _unquote_pattern(text: str) -> str:
    """Return a quoted regular expression, in which a backslash that escapes neither itself nor a quote stays."""
    return re.sub(r"\\([\\\"])", r"\1", text[1:-1])


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
