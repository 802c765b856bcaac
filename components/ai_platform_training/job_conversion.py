"""Conversion of a job of AI Platform Training into a declaration of this project."""

import re
from collections.abc import Mapping
from typing import Any

from vertex_api.names import CUSTOM_JOB, HYPERPARAMETER_TUNING_JOB

from .commented_yaml import CommentedFields
from .study_conversion import convert_study_spec, convert_trial_counts
from .worker_pool_conversion import convert_worker_pools, list_comments_on_ignored_pool_fields


def convert_valid_job(job: Mapping[str, Any], fallback_name: str) -> CommentedFields:
    """Return the fields, with comments, of a file that declares a valid Job; one without an id has `fallback_name`."""
    training_input = job["trainingInput"]
    display_name = job.get("jobId") or fallback_name
    name = re.sub(r"[^a-z0-9._-]", "-", display_name.lower())[:63].strip("._-") or "job"
    body = CommentedFields({"displayName": display_name} if display_name != name else {})
    for key, value in (("labels", job.get("labels")), ("encryptionSpec", training_input.get("encryptionConfig"))):
        if value:
            body[key] = value
    tuning = training_input.get("hyperparameters")
    if tuning:
        body["studySpec"] = convert_study_spec(tuning)
        body |= convert_trial_counts(tuning)
    body["trialJobSpec" if tuning else "jobSpec"] = _build_job_spec(training_input)
    jobs = CommentedFields({name: body})
    if "region" in training_input:
        text = f"region {training_input['region']}: a stack says where its jobs run, with vertex-training:region."
        jobs.add_comments(name, text)
    return CommentedFields({(HYPERPARAMETER_TUNING_JOB if tuning else CUSTOM_JOB).collection: jobs})


def _build_job_spec(training_input: dict[str, Any]) -> CommentedFields:
    spec = CommentedFields({"workerPoolSpecs": convert_worker_pools(training_input)})
    options = training_input.get("scheduling", {})
    if "maxRunningTime" in options:
        spec["scheduling"] = {"timeout": options["maxRunningTime"]}
    if "maxWaitTime" in options:
        text = "Vertex AI limits it for the strategy FLEX_START only, on newer GPUs: "
        text += f"{{strategy: FLEX_START, maxWaitDuration: {options['maxWaitTime']}}}."
        spec.add_comments("scheduling", f"maxWaitTime {options['maxWaitTime']}: {text}")
    if "priority" in options:
        spec.add_comments("scheduling", f"priority {options['priority']}: Vertex AI has none.")
    copied_names = ("serviceAccount", "network", "enableWebAccess")
    spec |= {name: training_input[name] for name in copied_names if name in training_input}
    if "jobDir" in training_input:
        folder = training_input["jobDir"]
        spec["baseOutputDirectory"] = {"outputUriPrefix": folder}
        text = (
            "jobDir: Vertex AI names folders below it in AIP_MODEL_DIR, AIP_CHECKPOINT_DIR and "
            f'AIP_TENSORBOARD_LOG_DIR, and gives no flag. If the code reads --job-dir, add "--job-dir={folder}" to '
            "args. Without this field each run gets a folder of its own."
        )
        spec.add_comments("baseOutputDirectory", text)
    if training_input.get("useChiefInTfConfig"):
        text = "useChiefInTfConfig: left out; Vertex AI always says chief."
        spec.add_comments("workerPoolSpecs", text)
    elif "useChiefInTfConfig" in training_input or len(spec["workerPoolSpecs"]) > 1:
        text = "TF_CONFIG calls the first replica chief, where AI Platform said master: see whether the code reads it."
        spec.add_comments("workerPoolSpecs", text)
    spec.add_comments("workerPoolSpecs", *list_comments_on_ignored_pool_fields(training_input))
    return spec
