"""Runs of jobs in a throw-away local target: without Pulumi's engine, and without a change of any stack."""
