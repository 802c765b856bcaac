"""What Python runs at its start: folders with a `sitecustomize.py` each, one of which comes first on PYTHONPATH."""
