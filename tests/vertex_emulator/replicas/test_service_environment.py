import json

from tests.vertex_emulator.jobs import custom_job, custom_job_spec, pool
from vertex_emulator.database.records import Replica
from vertex_emulator.names import project_number
from vertex_emulator.replicas.hostnames import build_cluster_spec_hostname
from vertex_emulator.replicas.service_environment import build_service_environment


def test_a_single_replica_gets_no_tf_config() -> None:
    environment = build_service_environment(custom_job(), Replica(0, 0))
    cluster = json.loads(environment["CLUSTER_SPEC"])
    assert cluster["cluster"] == {"workerpool0": [f"{build_cluster_spec_hostname('42', 0, 0)}:2222"]}
    assert cluster["task"] == {"type": "workerpool0", "index": 0}
    assert cluster["environment"] == "cloud"
    assert json.loads(cluster["job"]) == {"python_module": "", "package_uris": [], "job_args": []}
    assert "TF_CONFIG" not in environment
    assert (environment["RANK"], environment["WORLD_SIZE"]) == ("0", "1")


def test_project_number_and_job_id_are_given() -> None:
    environment = build_service_environment(custom_job(), Replica(0, 0))
    assert environment["CLOUD_ML_PROJECT_ID"] == project_number("my-project")
    assert environment["CLOUD_ML_JOB_ID"] == "42"
    assert environment["CLOUD_ML_REGION"] == "us-central1"
    assert "GOOGLE_CLOUD_PROJECT" not in environment


def test_roles_follow_pool_positions_across_empty_pools() -> None:
    job = custom_job(custom_job_spec(pool(), pool(2), {}, pool()))
    environment = build_service_environment(job, Replica(3, 0))
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
    assert environment["MASTER_ADDR"] == build_cluster_spec_hostname("42", 0, 0)


def test_output_directories_are_gs_uris_with_trailing_slash() -> None:
    for prefix in ("gs://bucket/run", "gs://bucket/run/"):
        job = custom_job(custom_job_spec(baseOutputDirectory={"outputUriPrefix": prefix}))
        environment = build_service_environment(job, Replica(0, 0))
        assert environment["AIP_MODEL_DIR"] == "gs://bucket/run/model/"
        assert environment["AIP_CHECKPOINT_DIR"] == "gs://bucket/run/checkpoints/"
        assert environment["AIP_TENSORBOARD_LOG_DIR"] == "gs://bucket/run/logs/"


def test_without_output_directory_no_output_variables_are_set() -> None:
    assert not [name for name in build_service_environment(custom_job(), Replica(0, 0)) if name.endswith("_DIR")]


def test_a_trial_knows_its_number_metric_and_study() -> None:
    environment = build_service_environment(custom_job(study="7", trial=3), Replica(0, 0), metric_id="acc")
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
    environment = build_service_environment(custom_job(custom_job_spec(**spec)), Replica(0, 0))
    assert environment["CLOUD_ML_JOB_SA"] == spec["serviceAccount"]
    assert environment["AIP_TENSORBOARD_RESOURCE_NAME"] == spec["tensorboard"]
    assert environment["AIP_EXPERIMENT_NAME"] == "tuning"
    assert environment["AIP_EXPERIMENT_RUN_NAME"] == "first"
    unset = {"AIP_TENSORBOARD_API_URI", "AIP_TF_PROFILER_PORT", "AIP_HTTP_HANDLER_PORT", "GOOGLE_CLOUD_PROJECT"}
    assert not unset & set(environment)
