"""The system parameter `fields` of Google's REST APIs: `name,trials(id,state),error/message`.

Source: Google's pages "Performance tips" of its REST APIs, "Partial response".
"""

from typing import Any

Mask = dict[str, Any]


def select_fields(answer: Any, fields: str) -> Any:
    """The part of an answer that a mask selects, all of it without one."""
    if not fields:
        return answer
    mask, rest = _parse(fields)
    assert not rest, f"no mask: {fields}"
    return _select(answer, mask)


def _parse(text: str) -> tuple[Mask, str]:
    """The fields up to the parenthesis that closes, and what follows it."""
    mask: Mask = {}
    while True:
        end = next((at for at, sign in enumerate(text) if sign in ",/()"), len(text))
        name, text = text[:end], text[end:]
        assert name.isidentifier(), f"no field: {name}{text}"
        inner: Mask = {}
        if text.startswith("("):
            inner, text = _parse(text[1:])
            assert text.startswith(")")
            text = text[1:]
        elif text.startswith("/"):
            end = next((at for at, sign in enumerate(text) if sign in ",()"), len(text))
            inner, rest = _parse(text[1:end])
            assert not rest
            text = text[end:]
        mask[name] = inner
        if not text.startswith(","):
            return mask, text
        text = text[1:]


def _select(value: Any, mask: Mask) -> Any:
    if not mask:
        return value
    if isinstance(value, list):
        return [_select(each, mask) for each in value]
    return {name: _select(value[name], inner) for name, inner in mask.items() if name in value}
