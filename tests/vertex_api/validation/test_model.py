"""Rules of the data that a training pipeline is given."""

from typing import Any

import pytest

from vertex_api.validation.model import _check_data

DATA = {"datasetId": "1", "gcsDestination": {"outputUriPrefix": "gs://bucket/data"}}
HALVES = {"trainingFraction": 0.7, "validationFraction": 0.2, "testFraction": 0.1}


def said_of(**fields: Any) -> list[tuple[str, str]]:
    """The findings for good data with these fields: the path below it, and the message."""
    return [(".".join(map(str, path)), message) for path, message in _check_data(DATA | fields, ())]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"fractionSplit": HALVES},
        {"fractionSplit": {}},
        {"timestampSplit": {"key": "time", **HALVES}},
        {"savedQueryId": "1", "annotationsFilter": "labels.a=b"},
        {"annotationSchemaUri": "gs://google-cloud-aiplatform/schema/dataset/annotation/x.yaml"},
    ],
)
def test_data_within_the_rules_is_taken(fields: dict[str, Any]) -> None:
    assert said_of(**fields) == []


@pytest.mark.parametrize("uri", ["bq://project", "bq://project.dataset", "bq://project.dataset.table"])
def test_data_may_go_to_bigquery(uri: str) -> None:
    assert list(_check_data({"datasetId": "1", "bigqueryDestination": {"outputUri": uri}}, ())) == []


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"datasetId": ""}, "datasetId", "is required"),
        (
            {"fractionSplit": HALVES, "predefinedSplit": {"key": "k"}},
            "predefinedSplit",
            "cannot be set beside fractionSplit",
        ),
        (
            {"bigqueryDestination": {"outputUri": "bq://p"}},
            "bigqueryDestination",
            "cannot be set beside gcsDestination",
        ),
        (
            {"annotationSchemaUri": "gs://b/x.yaml", "savedQueryId": "1"},
            "savedQueryId",
            "cannot be set beside annotationSchemaUri",
        ),
        ({"fractionSplit": {"testFraction": -0.1}}, "fractionSplit.testFraction", "-0.1 is not within 0 to 1"),
        (
            {"stratifiedSplit": {"key": "k", **HALVES, "testFraction": 0.2}},
            "stratifiedSplit",
            "the fractions sum to 1.1, which is more than 1",
        ),
        (
            {"gcsDestination": {"outputUriPrefix": "s3://b"}},
            "gcsDestination.outputUriPrefix",
            '"s3://b" must have the form gs://{bucket}/{object}',
        ),
        (
            {"annotationSchemaUri": "schema.yaml"},
            "annotationSchemaUri",
            '"schema.yaml" must have the form gs://{bucket}/{object}',
        ),
        ({"gcsDestination": {"outputUriPrefix": ""}}, "gcsDestination.outputUriPrefix", "is required"),
    ],
)
def test_data_against_the_rules_is_refused(fields: dict[str, Any], field: str, message: str) -> None:
    assert said_of(**fields) == [(field, message)]


@pytest.mark.parametrize("uri", ["project.dataset", "bq://", "bq://a.b.c.d"])
def test_bigquery_has_its_form(uri: str) -> None:
    ((path, message),) = _check_data({"datasetId": "1", "bigqueryDestination": {"outputUri": uri}}, ())
    assert path == ("bigqueryDestination", "outputUri")
    assert message.endswith("must have the form bq://{project}[.{dataset}[.{table}]]")
