"""What axe-core finds on a page."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

OF_COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""axe's rules on colours, which alone depend on the scheme."""


def assert_accessible(page: Page) -> None:
    """Fail on what breaks one of axe's rules, in either colour scheme."""
    for scheme, limited in (("light", {}), ("dark", OF_COLOURS)):
        page.emulate_media(color_scheme=scheme)
        # Only an experimental rule needs the preload, which adds inline styles at times, and the page forbids these.
        options = {"resultTypes": ["violations"], "preload": False, **limited}
        rules = Axe().run(page, options=options).response["violations"]
        assert [(rule["id"], node["html"]) for rule in rules for node in rule["nodes"]] == [], (page.url, scheme)
