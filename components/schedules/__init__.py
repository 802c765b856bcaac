"""Schedule: jobs that run again at the times of a cron expression, their requests, and the emulator's schedules."""
