"""Golden previews: short inventories of what a preview would do, kept beside the tests."""

from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent / "golden"


def load_golden_steps(case: str) -> list[dict[str, Any]]:
    """Return the expected steps of a case, in the form and the order of `Project.steps`."""
    return list(yaml.safe_load((_FOLDER / f"{case}.yaml").read_text()))
