"""A stand-in for Google's Workflows: it runs the steps, expressions and functions that the project's workflows use.

Whatever else a workflow has is refused, so that no test passes by what this stand-in leaves out.
"""
