"""Rules for texts, names and labels."""

import pytest

from tests.vertex_api.validation.breaking import said_of_custom_job, said_of_tuning_job
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


KEY = "projects/p/locations/us-central1/keyRings/ring/cryptoKeys/key"


def test_a_display_name_has_1_to_128_characters() -> None:
    assert said_of_custom_job("displayName", to="é" * 128) == []
    assert said_of_custom_job("displayName", to="x" * 129) == ["displayName: is longer than 128 characters"]
    assert said_of_custom_job("displayName", to="") == ["displayName: is required"]
    assert said_of_tuning_job("displayName", to="x" * 129) == ["displayName: is longer than 128 characters"]


@pytest.mark.parametrize(
    "labels",
    [{"team": "ml"}, {"9": ""}, {"a_b-c": "-_-"}, {"größe": "klein"}, {"チーム": "学習"}, {"k" * 63: "v" * 63}, {}],
)
def test_labels_may_use_lowercase_letters_of_any_script(labels: dict[str, str]) -> None:
    assert said_of_custom_job("labels", to=labels) == []


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"Team": "a"}, 'the key "Team" may hold lower-case letters, digits, underscores and dashes only'),
        ({"_a": "a"}, 'the key "_a" must start with a lower-case letter or a digit'),
        ({"": "a"}, 'the key "" must start with a lower-case letter or a digit'),
        ({"a b": "a"}, 'the key "a b" may hold lower-case letters, digits, underscores and dashes only'),
        ({"a": "B"}, 'the value "B" may hold lower-case letters, digits, underscores and dashes only'),
        ({"a": "x.y"}, 'the value "x.y" may hold lower-case letters, digits, underscores and dashes only'),
        ({"a": "v" * 64}, "must be shorter than 64 characters and than 128 bytes of UTF-8"),
        ({"あ" * 43: "a"}, "must be shorter than 64 characters and than 128 bytes of UTF-8"),
        ({f"k{index}": "" for index in range(65)}, "has 65 labels; at most 64 are allowed"),
    ],
)
def test_other_labels_are_refused(labels: dict[str, str], message: str) -> None:
    said = said_of_custom_job("labels", to=labels)
    assert all(text.startswith(("labels: ", "labels.a: ")) for text in said)
    assert any(text.endswith(message) for text in said)


def test_encryption_keys_need_a_regional_name() -> None:
    assert said_of_custom_job("encryptionSpec", to={"kmsKeyName": KEY}) == []
    for name in (KEY.replace("us-central1", "global"), KEY.replace("us-central1", "us"), "key", f"{KEY}/x", f"{KEY}\n"):
        (said,) = said_of_custom_job("encryptionSpec", to={"kmsKeyName": name})
        assert said.startswith("encryptionSpec.kmsKeyName: ")
        assert "must have the form projects/{project}/locations/{region}/keyRings/" in said
    assert said_of_tuning_job("encryptionSpec", to={"kmsKeyName": ""}) == ["encryptionSpec.kmsKeyName: is required"]
