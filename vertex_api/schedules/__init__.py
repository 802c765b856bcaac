"""Schedules of training jobs: rules and times of cron expressions, ids of runs, and the requests of scheduled jobs."""
