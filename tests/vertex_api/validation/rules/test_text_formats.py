"""Forms of texts: the names of images and of Python modules."""

import pytest

from vertex_api.validation.formats import IMAGE, MODULE

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    "name",
    [
        "x",
        "python:3.11",
        "library/python",
        "localhost/absent:1",
        "localhost:5000/team/trainer",
        "127.0.0.1:9/none/such:1",
        "[::1]:5000/x",
        "US-docker.pkg.dev/acme/train/image:V1.0_b-2",
        "us-docker.pkg.dev/example.com/acme/train/image",
        "gcr.io/a.b/c_d/e__f/g---h",
        f"us-docker.pkg.dev/acme/train/image@{DIGEST}",
        f"us-docker.pkg.dev/acme/train/image:1@{DIGEST}",
        DIGEST,
    ],
)
def test_names_of_images_are_taken(name: str) -> None:
    assert IMAGE.matches(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " x",
        "x\n",
        "https://gcr.io/acme/x",
        "us-docker.pkg.dev/acme/Train/image",
        "us-docker.pkg.dev/acme/../evil/x",
        "us-docker.pkg.dev/acme/./x",
        "us-docker.pkg.dev//x",
        "us-docker.pkg.dev/acme/",
        "a..b",
        "a___b",
        "-a",
        "x:",
        "x:" + "t" * 129,
        "x:a:b",
        "x@sha256:0",
        "é",
        "x:é",
    ],
)
def test_other_texts_are_no_names_of_images(name: str) -> None:
    assert not IMAGE.matches(name)


@pytest.mark.parametrize("text", ["a" * 100_000 + "!", "a." * 50_000 + "!", "a-" * 50_000, "a/" * 50_000])
def test_matching_time_is_linear(text: str) -> None:
    assert not IMAGE.matches(text)


@pytest.mark.parametrize("name", ["task", "trainer.task", "my-app.task2"])
def test_dotted_python_modules_match(name: str) -> None:
    assert MODULE.matches(name)


@pytest.mark.parametrize("name", ["trainer/task.py", "trainer task", ".task", "trainer.", "a..b", "task\n"])
def test_paths_are_no_modules(name: str) -> None:
    assert not MODULE.matches(name)
