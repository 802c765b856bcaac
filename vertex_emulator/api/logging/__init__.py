"""Cloud Logging's `entries:list`, for the logs of training jobs."""
