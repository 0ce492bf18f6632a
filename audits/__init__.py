"""Attacks on every mechanism and release, and the tables of docs/audits.md that they fill."""
