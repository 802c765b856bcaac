"""The folder that is first on PYTHONPATH in containers of `vertex-emulator inject debug`."""
