"""Whole stories told with the package; each file runs: `python -m examples.digits`."""
