"""Reading a filter's text: the grammar of Google's AIP-160, which Cloud Logging's query language shares."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vertex_emulator.api.filter_tree import And, Comparison, Filter, Not, Or
from vertex_emulator.errors import InvalidFilter

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<punctuation>[()])
      | (?P<operator><=|>=|!=|=|<|>|:)
      | (?P<quoted>"(?:[^"\\]|\\.)*")
      | (?P<word>[^\s()<>=!:"]+)
    )""",
    re.VERBOSE,
)
_MAX_DEPTH = 50


def parse(text: str) -> Filter | None:
    """Read a filter; None for an empty one.

    OR binds tighter than AND, and terms side by side are joined by AND (AIP-160, and Cloud Logging's query
    language). Field names keep their quoted segments without the quotes. Raises FilterError.
    """
    tokens = list(_tokens(text))
    if not tokens:
        return None
    parser = _Parser(text, tokens)
    found = parser.conjunction(0)
    parser.expect_end()
    return found


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise InvalidFilter(
                f"cannot read the filter at character {position + 1}: {text[position : position + 20]!r}"
            )
        yield match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)
        position = match.end()


class _Parser:
    def __init__(self, text: str, tokens: list[tuple[str, str, int]]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0

    def conjunction(self, depth: int) -> Filter:
        terms = [self.disjunction(depth)]
        while self._peek() is not None and self._peek() != ("punctuation", ")"):
            if self._peek() == ("word", "AND"):
                self._at += 1
            terms.append(self.disjunction(depth))
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def disjunction(self, depth: int) -> Filter:
        terms = [self.term(depth)]
        while self._peek() == ("word", "OR"):
            self._at += 1
            terms.append(self.term(depth))
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def term(self, depth: int) -> Filter:
        if depth > _MAX_DEPTH:
            raise InvalidFilter(f"the filter nests more than {_MAX_DEPTH} deep")
        if self._peek() == ("word", "NOT"):
            self._at += 1
            return Not(self.term(depth + 1))
        if self._minus():
            return Not(self.term(depth + 1))
        if self._peek() == ("punctuation", "("):
            self._at += 1
            inner = self.conjunction(depth + 1)
            self._take("punctuation", ")")
            return inner
        return self.comparison()

    def _minus(self) -> bool:
        """Whether the term begins with `-`, which is another way to write NOT; it is then taken off."""
        kind, text = self._peek() or ("", "")
        if kind != "word" or not text.startswith("-"):
            return False
        start = self._tokens[self._at][2]
        self._tokens[self._at : self._at + 1] = [("word", text[1:], start + 1)] if text != "-" else []
        return True

    def comparison(self) -> Comparison:
        field = self._field()
        operator = self._take("operator")
        kind, value = self._next("a value")
        if kind == "quoted":
            return Comparison(field, operator, _unquote(value))
        if kind != "word":
            raise self._error(f"a value after {field}{operator}", back=1)
        # A bare time holds colons, which are operators elsewhere.
        while (follower := self._glued()) is not None:
            value += follower
        return Comparison(field, operator, value)

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise self._error("the end")

    def _field(self) -> str:
        kind, text = self._next("a field name")
        if kind not in ("word", "quoted") or text in ("AND", "OR"):
            raise self._error("a field name", back=1)
        field = _unquote(text) if kind == "quoted" else text
        while field.endswith(".") and self._peek_kind() == "quoted":
            field += _unquote(self._take("quoted"))
        return field

    def _glued(self) -> str | None:
        """The next token when no space parts it from the last one: the rest of a bare value such as a time."""
        if self._at >= len(self._tokens):
            return None
        kind, text, start = self._tokens[self._at]
        _, last, last_start = self._tokens[self._at - 1]
        if last_start + len(last) != start or not (kind == "word" or (kind, text) == ("operator", ":")):
            return None
        self._at += 1
        return text

    def _peek(self) -> tuple[str, str] | None:
        return self._tokens[self._at][:2] if self._at < len(self._tokens) else None

    def _peek_kind(self) -> str | None:
        token = self._peek()
        return token[0] if token else None

    def _next(self, wanted: str) -> tuple[str, str]:
        token = self._peek()
        if token is None:
            raise self._error(wanted)
        self._at += 1
        return token

    def _take(self, kind: str, text: str | None = None) -> str:
        found, value = self._next(text or f"an {kind}")
        if found != kind or (text is not None and value != text):
            raise self._error(text or f"an {kind}", back=1)
        return value

    def _error(self, wanted: str, back: int = 0) -> InvalidFilter:
        at = self._at - back
        where = f"at {self._text[self._tokens[at][2] :][:20]!r}" if at < len(self._tokens) else "at its end"
        return InvalidFilter(f"the filter lacks {wanted} {where}")


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
