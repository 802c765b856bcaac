import json
import re
import tracemalloc
from typing import Any

import pytest

from tests.vertex_emulator.jobs import custom_job, custom_job_spec, pool
from vertex_emulator.database.records import Replica
from vertex_emulator.errors import ReplicaCannotStart
from vertex_emulator.names import project_number
from vertex_emulator.replicas.environment import (
    MAX_TEXT_BYTES,
    ContainerTexts,
    escape,
    expand,
    hostname,
    pod_hostname,
    service_variables,
)


def test_single_replica_gets_no_tf_config() -> None:
    environment = service_variables(custom_job(), Replica(0, 0))
    cluster = json.loads(environment["CLUSTER_SPEC"])
    assert cluster["cluster"] == {"workerpool0": [f"{hostname('42', 0, 0)}:2222"]}
    assert cluster["task"] == {"type": "workerpool0", "index": 0}
    assert cluster["environment"] == "cloud"
    assert json.loads(cluster["job"]) == {"python_module": "", "package_uris": [], "job_args": []}
    assert "TF_CONFIG" not in environment
    assert (environment["RANK"], environment["WORLD_SIZE"]) == ("0", "1")


def test_project_number_and_job_id_are_given() -> None:
    environment = service_variables(custom_job(), Replica(0, 0))
    assert environment["CLOUD_ML_PROJECT_ID"] == project_number("my-project")
    assert environment["CLOUD_ML_JOB_ID"] == "42"
    assert environment["CLOUD_ML_REGION"] == "us-central1"
    assert "GOOGLE_CLOUD_PROJECT" not in environment


def test_roles_follow_pool_positions_across_empty_pools() -> None:
    job = custom_job(custom_job_spec(pool(), pool(2), {}, pool()))
    environment = service_variables(job, Replica(3, 0))
    cluster = json.loads(environment["CLUSTER_SPEC"])
    assert {name: len(hosts) for name, hosts in cluster["cluster"].items()} == {
        "workerpool0": 1,
        "workerpool1": 2,
        "workerpool3": 1,
    }
    tf_config = json.loads(environment["TF_CONFIG"])
    assert set(tf_config["cluster"]) == {"chief", "worker"}
    assert tf_config["task"] == {"type": "evaluator", "index": 0}
    assert (environment["RANK"], environment["WORLD_SIZE"]) == ("3", "4")
    assert environment["MASTER_ADDR"] == hostname("42", 0, 0)


def test_output_directories_are_gs_uris_with_trailing_slash() -> None:
    for prefix in ("gs://bucket/run", "gs://bucket/run/"):
        job = custom_job(custom_job_spec(baseOutputDirectory={"outputUriPrefix": prefix}))
        environment = service_variables(job, Replica(0, 0))
        assert environment["AIP_MODEL_DIR"] == "gs://bucket/run/model/"
        assert environment["AIP_CHECKPOINT_DIR"] == "gs://bucket/run/checkpoints/"
        assert environment["AIP_TENSORBOARD_LOG_DIR"] == "gs://bucket/run/logs/"


def test_without_output_directory_no_output_variables_are_set() -> None:
    assert not [name for name in service_variables(custom_job(), Replica(0, 0)) if name.endswith("_DIR")]


def test_trial_knows_its_number_metric_and_study() -> None:
    environment = service_variables(custom_job(study="7", trial=3), Replica(0, 0), metric_id="acc")
    assert environment["CLOUD_ML_TRIAL_ID"] == "3"
    assert environment["CLOUD_ML_HP_METRIC_FILE"] == "/tmp/hypertune/output.metrics"
    assert environment["CLOUD_ML_HP_METRIC_TAG"] == "acc"
    assert environment["CLOUD_ML_JOB_ID"] == "7"
    assert json.loads(environment["CLUSTER_SPEC"])["task"]["trial"] == "3"


def test_account_tensorboard_and_experiment_are_given_by_name() -> None:
    parent = "projects/1/locations/us-central1"
    contexts = f"{parent}/metadataStores/default/contexts"
    spec = {
        "serviceAccount": "me@my-project.iam.gserviceaccount.com",
        "tensorboard": f"{parent}/tensorboards/5",
        "experiment": f"{contexts}/tuning",
        "experimentRun": f"{contexts}/tuning-first",
    }
    environment = service_variables(custom_job(custom_job_spec(**spec)), Replica(0, 0))
    assert environment["CLOUD_ML_JOB_SA"] == spec["serviceAccount"]
    assert environment["AIP_TENSORBOARD_RESOURCE_NAME"] == spec["tensorboard"]
    assert environment["AIP_EXPERIMENT_NAME"] == "tuning"
    assert environment["AIP_EXPERIMENT_RUN_NAME"] == "first"
    unset = {"AIP_TENSORBOARD_API_URI", "AIP_TF_PROFILER_PORT", "AIP_HTTP_HANDLER_PORT", "GOOGLE_CLOUD_PROJECT"}
    assert not unset & set(environment)


def expand_environment(service_variables: dict[str, str], user_env: list[tuple[str, str]]) -> dict[str, str]:
    env = [{"name": name, "value": value} for name, value in user_env]
    return ContainerTexts.expand({"env": env}, service_variables).environment


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)/model", "one/model"),
        ("$(A)$(B)", "onetwo"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$$$(A)", "$$(A)"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$(A B)", "$(A B)"),
    ],
)
def test_references_expand_as_kubernetes_expands_them(text: str, expanded: str) -> None:
    assert expand(text, {"A": "one", "B": "two"}) == expanded


def test_variable_sees_only_those_before_it() -> None:
    environment = expand_environment(
        {"AIP_MODEL_DIR": "gs://b/model/"},
        [("HERE", "$(AIP_MODEL_DIR)x"), ("EARLY", "$(LATE)"), ("LATE", "$(HERE)!")],
    )
    assert environment["HERE"] == "gs://b/model/x"
    assert environment["EARLY"] == "$(LATE)"
    assert environment["LATE"] == "gs://b/model/x!"


def test_expanded_value_is_not_expanded_again() -> None:
    assert expand_environment({}, [("A", "$$(B)"), ("B", "b"), ("C", "$(A)")])["C"] == "$(B)"


@pytest.mark.parametrize("text", ["plain", "$(A)", "$$(A)", "$", "a $(B", "$$$(A)"])
def test_escaped_text_is_what_its_expansion_gives(text: str) -> None:
    assert expand(escape(text), {"A": "one"}) == text


def tenfold(count: int) -> list[dict[str, str]]:
    """Variables that each hold the last one ten times."""
    first = {"name": "V0", "value": "x" * 10}
    return [first, *({"name": f"V{i}", "value": f"$(V{i - 1})" * 10} for i in range(1, count))]


@pytest.mark.parametrize(
    ("container", "place"),
    [
        ({"env": tenfold(9)}, "the variable V5"),
        ({"env": [{"name": "A", "value": "x" * MAX_TEXT_BYTES}]}, "the variable A"),
        ({"env": tenfold(5), "args": ["ok", "--x=$(V4)$(V4)"]}, 'the argument "--x=$(V4)$(V4)"'),
        ({"env": tenfold(5), "command": ["$(V4)" * 800_000]}, 'the argument "$(V4)$(V4)'),
        ({"args": ["ä" * (MAX_TEXT_BYTES // 2)]}, 'the argument "ää'),
        ({"env": tenfold(5), "args": ["$(V4)"] * 800_000}, "env, command and args are together"),
        ({"args": ["x" * 99] * 800_000}, "env, command and args are together"),
    ],
)
def test_texts_too_long_for_linux_are_rejected(container: dict[str, Any], place: str) -> None:
    tracemalloc.start()
    with pytest.raises(ReplicaCannotStart) as caught:
        ContainerTexts.expand(container, {"RANK": "0"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value).startswith(place)
    assert "longer than" in str(caught.value)
    assert str(caught.value).count("\n") == 0
    assert len(str(caught.value)) < 300
    assert peak < 60 << 20


def test_texts_as_long_as_linux_takes_are_expanded() -> None:
    value = "x" * (MAX_TEXT_BYTES - len("A=") - 1)
    env = [{"name": "A", "value": value}, {"name": "B", "value": "$(A)"}]
    assert ContainerTexts.expand({"env": env, "args": ["$(A)yy"]}, {}).environment["B"] == value


def test_host_names_share_digits_of_their_job() -> None:
    first, second = hostname("1", 0, 0), hostname("1", 1, 2)
    assert first.split("-")[3] == second.split("-")[3]
    assert len(first.split("-")[3]) == 10
    assert second.startswith("cmle-training-workerpool1-")
    assert second.endswith("-2")


def test_container_own_name_has_suffix() -> None:
    names = {pod_hostname("1", 0, index) for index in range(3)}
    assert all(
        re.fullmatch(r"cmle-training-workerpool0-[0-9a-f]{10}-[012]-[bcdfghjklmnpqrstvwxz2456789]{5}", name)
        for name in names
    )
    assert len({name[-5:] for name in names}) == 3
    assert pod_hostname("1", 0, 0) in names
