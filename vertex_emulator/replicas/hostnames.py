"""The host names of replicas, in the form of real jobs."""

import hashlib

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # those of Kubernetes


def build_pod_hostname(job_id: str, pool: int, index: int) -> str:
    """Return what `hostname` says in a replica, for example `cmle-training-workerpool0-669872baaf-0-cd5sv`.

    It is the name of a Kubernetes pod: that of CLUSTER_SPEC with a suffix, by which no replica finds its rank.
    """
    name = build_cluster_spec_hostname(job_id, pool, index)
    digest = hashlib.sha256(name.encode()).digest()
    return f"{name}-{''.join(_SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)] for byte in digest[:5])}"


def derive_hostname_hash(job_id: str) -> str:
    """Return the ten hex digits of a job in its replicas' host names."""
    return hashlib.sha256(job_id.encode()).hexdigest()[:10]


def build_cluster_spec_hostname(job_id: str, pool: int, index: int) -> str:
    """Return the name of a replica in CLUSTER_SPEC, for example `cmle-training-workerpool0-669872baaf-0`."""
    return f"cmle-training-workerpool{pool}-{derive_hostname_hash(job_id)}-{index}"
