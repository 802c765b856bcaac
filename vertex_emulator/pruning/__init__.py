"""The removal of old jobs."""
