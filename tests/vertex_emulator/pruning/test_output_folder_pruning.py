"""Which output folders a prune keeps: those to which another text refers."""

import pytest

from vertex_emulator.pruning.output_folder_pruning import split_into_unreferenced_and_referenced_uris


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ('{"artifactUri": "gs://bucket/run/model"}', True),
        ('{"args": ["--from=/gcs/bucket/run"]}', True),
        ('{"outputUriPrefix": "gs://bucket/run/"}', True),
        ('{"outputUriPrefix": "gs://bucket/all"}', False),
        ('{"args": ["gs://bucket/running", "gs://bucket/run2"]}', False),
        ('{"args": ["gs://bucket"]}', False),
        ('{"args": ["gs://other/run"]}', False),
    ],
)
def test_references_keep_a_folder(text: str, is_kept: bool) -> None:
    unreferenced, kept = split_into_unreferenced_and_referenced_uris(["gs://bucket/run"], [text])
    assert (unreferenced, kept) == (([], ["gs://bucket/run"]) if is_kept else (["gs://bucket/run"], []))


def test_a_reference_to_a_folder_above_keeps_it() -> None:
    assert split_into_unreferenced_and_referenced_uris(["gs://b/all/run"], ["gs://b/all"]) == ([], ["gs://b/all/run"])


def test_a_whole_bucket_is_kept() -> None:
    assert split_into_unreferenced_and_referenced_uris(["gs://bucket"], []) == ([], ["gs://bucket"])
