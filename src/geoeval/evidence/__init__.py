"""Canonical bytes and the bundle that names itself."""
