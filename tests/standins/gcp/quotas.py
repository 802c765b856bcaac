"""What the stand-in answers about quotas: Google's defaults of a fresh project, and what `GCP_STANDIN_QUOTAS` sets.

The variable is a JSON object of values (-1 is unlimited) by metric without its prefix, or a text: Google's refusal.
`GCP_STANDIN_QUOTA_SECONDS` is how long the answer takes.
"""

import json
import os
import time
from collections.abc import Mapping
from typing import Any

REGION = "europe-west4"
"""The region that has values of its own; all others share the defaults."""
PREFIX = "aiplatform.googleapis.com/custom_model_training_"
_CPUS = {"cpus": 2200, "preemptible_cpus": 1, "n2_cpus": 450, "n4_cpus": 450, "c2_cpus": 450, "a2_cpus": -1}
_GPUS = {"t4": 12, "v100": 6, "p100": 56, "p4": 6, "a100": 8, "l4": 0, "a100_80gb": 0, "h100": 0, "h200": 0}
DEFAULTS = _CPUS | {f"nvidia_{name}_gpus": value for name, value in _GPUS.items()} | {"pd_ssd": -1}


def answer_quota_infos(parent: str, service: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The result of `get_s_quota_infos`. Raises PermissionError with Google's text."""
    time.sleep(float(environment.get("GCP_STANDIN_QUOTA_SECONDS", "0")))
    known = json.loads(environment.get("GCP_STANDIN_QUOTAS", "{}"))
    if isinstance(known, str):
        raise PermissionError(known)
    infos = [_quota_info(parent, service, metric, DEFAULTS.get(metric, 0), known) for metric in {**DEFAULTS, **known}]
    return {"id": parent, "parent": parent, "service": service, "quotaInfos": infos}


def _quota_info(parent: str, service: str, metric: str, default: int, known: dict[str, int]) -> dict[str, Any]:
    value = known.get(metric, default)
    quota_id = f"CustomModelTraining-{metric}-PerProjectPerRegion"
    return {
        "name": f"{parent}/locations/global/services/{service}/quotaInfos/{quota_id}",
        "quotaId": quota_id,
        "service": service,
        "metric": PREFIX + metric,
        "containerType": "PROJECT",
        "dimensions": ["region"],
        "isPrecise": True,
        "isFixed": False,
        "isConcurrent": False,
        "serviceRequestQuotaUri": "",
        "dimensionsInfos": [
            {
                "dimensions": {"region": REGION},
                "details": [{"value": str(value)}],
                "applicableLocations": [REGION],
            },
            {
                "dimensions": {},
                "details": [{"value": str(default)}],
                "applicableLocations": ["asia-east1", "us-central1", "us-east1"],
            },
        ],
    }
