"""Schedules: which times are due, and the runs that submit their jobs, each once, whenever the process is killed."""
