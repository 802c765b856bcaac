"""The table of rules: each has its source beside it, and the page shows them all."""

import re

from tests.blocks import ROOT
from tools import rules

SOURCE = re.compile(
    r"[Dd]iscovery document|Google's (overview|page)|service's own|service's error|[Uu]nions of Google's client"
)


def test_every_refusing_rule_has_its_source() -> None:
    found = [*rules.rules()]
    assert len(found) > 50
    assert [each.name for each in found if each.is_refusal and not SOURCE.search(each.source)] == []
    assert all(each.source for each in found)


def test_the_page_has_all_rules() -> None:
    assert (ROOT / rules.PAGE).read_text() == rules.text()
