"""The workflow of a schedule on Google Cloud: its source for Workflows, made from the requests of its jobs."""
