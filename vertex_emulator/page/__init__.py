"""The page: what a browser shows of jobs, trials, logs and outputs, and the JSON that it asks for."""
