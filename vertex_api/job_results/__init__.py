"""Results of jobs: what other jobs can refer to, what a stack exports, and what runs of schedules fill in."""
