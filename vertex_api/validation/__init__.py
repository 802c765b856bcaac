"""Validation of jobs and pipelines against the API's messages and rules, with every problem reported at once."""
