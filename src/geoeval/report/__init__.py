"""Estimates and verdicts made readable."""
