"""The folder that `vertex-emulator exec` puts on PYTHONPATH, and in containers `vertex-emulator inject debug`."""
