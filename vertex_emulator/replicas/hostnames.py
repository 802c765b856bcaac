"""The host names of replicas, in the form of real jobs."""

import hashlib


def derive_hostname_hash(job_id: str) -> str:
    """Return the ten hex digits of a job in its replicas' host names."""
    return hashlib.sha256(job_id.encode()).hexdigest()[:10]


def build_replica_hostname(job_id: str, pool: int, index: int) -> str:
    """Return the host name of a replica for example `cmle-training-workerpool0-669872baaf-0`."""
    return f"cmle-training-workerpool{pool}-{derive_hostname_hash(job_id)}-{index}"
