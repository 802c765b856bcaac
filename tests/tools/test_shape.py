"""What `python -m tools.shape` counts."""

from pathlib import Path

import pytest

from tools import shape

SOURCE = """\
class Job:
    def __init__(self): ...

    def modelDir(self): ...

async def find_by_the_full_name(): ...
"""


def test_modules_and_names_are_measured(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name, text in {
        "jobs.py": SOURCE,
        "job_list.py": "def page(): ...\n",
        "types.py": '"""Generated, do not edit."""\n',
        "tests/test_jobs.py": SOURCE,
    }.items():
        (tmp_path / name).write_text(text)
    found = shape.measure(shape.find_modules(str(tmp_path)))
    assert found == shape.Shape(2, lines=3.5, module_words=1.5, function_words=8 / 3, long=1 / 3)


def test_a_folder_and_an_installed_package_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shape.main(["tools", "starlette"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["modules", "tools", "starlette"]
    with pytest.raises(SystemExit, match="nowhere: is neither a folder nor an installed package"):
        shape.main(["nowhere"])
