"""Vertex AI custom training as code: the whole program."""

import vertex_training

vertex_training.run()
