"""The folder that `vertex-emulator exec` puts on PYTHONPATH."""
