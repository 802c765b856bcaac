"""The defaults of the emulator's settings for containers, which `serve` and a stack file both have."""

PIDS_LIMIT = 8192
"""Processes and threads of a container: enough for data loaders and Ray, a quarter of what many kernels have."""
LOG_LIMIT_MB = 100
EGRESS = True
