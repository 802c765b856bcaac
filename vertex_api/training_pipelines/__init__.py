"""Training pipelines: their types as declared, and the job that each one runs."""
