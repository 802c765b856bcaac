"""Tests of `vertex-training doctor`."""
