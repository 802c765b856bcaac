"""What to do about a job that the API refuses: for a quota, a missing image, or an account its caller may not use."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from vertex_api.errors import InvalidRequest, NotFound, PermissionDenied, QuotaExceeded
from vertex_api.estimates.quota import METRIC_PREFIX, needed_quota
from vertex_api.job import Job
from vertex_api.retry import find_propagation

from ..runtime.target import Target

_MISSING_IMAGE = re.compile(r"The image \S+ does not exist")
"""The service's text for a training pipeline (Google's notebooks)."""


@contextmanager
def reraise_refusals_with_remedies(spec: Job, api: Target) -> Iterator[None]:
    """Raise refusals that users meet again and again with what to do about them, in one line."""
    try:
        yield
    except QuotaExceeded as error:
        if not error.metrics:
            raise
        region, page = api.parent.rpartition("/")[2], api.links.quota_page
        raise QuotaExceeded(build_quota_refusal_message(error.metrics, spec, region, page), error.metrics) from error
    except (InvalidRequest, PermissionDenied, NotFound) as error:
        if propagation := find_propagation(str(error)):
            remedy = propagation.remedy
        elif isinstance(error, NotFound) and _MISSING_IMAGE.search(str(error)):
            remedy = "build and push it, or correct imageUri or executorImageUri"
        else:
            raise
        raise type(error)(f"{error}; {remedy}") from error


def build_quota_refusal_message(metrics: tuple[str, ...], spec: Job, region: str, page_url: str) -> str:
    """Return what a job needs of the quotas that do not cover it in `region`, and the page to ask for more."""
    needs = needed_quota(spec)

    def render_metric_with_need(metric: str) -> str:
        amount = needs.get(metric.removeprefix(METRIC_PREFIX))
        return metric if amount is None else f"{metric} (this job needs {amount:,})"

    needs_text = ", ".join(map(render_metric_with_need, metrics))
    return f"the quota in {region} does not cover {needs_text}; ask for more at {page_url}"
