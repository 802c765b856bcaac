"""Find or install what the project needs: Python packages, the Pulumi engine, Docker and the base image.

It runs before anything is installed, so it uses the standard library alone.
"""
