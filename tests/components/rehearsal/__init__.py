"""Runs of jobs in a throw-away local target."""
