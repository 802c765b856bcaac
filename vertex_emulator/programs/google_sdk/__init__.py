"""The folder that `vertex-emulator exec` puts first on PYTHONPATH."""
