"""All examples fit into one stack, beside what the repository trains by itself."""

import json

from vertex_training.images.image import build_context
from vertex_training.settings.settings import Settings

from tests.examples.running import ROOT


def settings() -> Settings:
    files = sorted([*ROOT.glob("training/*.yaml"), *ROOT.glob("examples/*/training.yaml")])
    include = json.dumps([str(file.relative_to(ROOT)) for file in files])
    config = {"vertex-training:target": "local", "vertex-training:include": include}
    return Settings.load_from_config("vertex-training", "local", ROOT, config)


def test_one_stack_can_include_all_examples() -> None:
    assert {file.parent.name for file in ROOT.glob("examples/*/training.yaml")} < settings().images.keys()


def test_images_hold_neither_pages_nor_declarations() -> None:
    images = settings().images
    assert len(images) >= 7
    for image in images.values():
        assert not {"README.md", "training.yaml"} & build_context(ROOT, image).digests.keys()


def test_every_example_is_in_the_table_of_the_docs() -> None:
    page = (ROOT / "docs/README.md").read_text()
    folders = [folder.name for folder in ROOT.glob("examples/*") if (folder / "README.md").is_file()]
    assert [name for name in folders if f"(../examples/{name}" not in page] == []
