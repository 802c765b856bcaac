"""Estimates for a job before it runs: cost, quota and regional availability."""
