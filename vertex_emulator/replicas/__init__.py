"""Replicas as containers: their specs, environments, resource limits and logs, and the executor that runs them."""
