"""Geometry that knows no statistics: systems, grids, overlap, boundaries, validity, matching."""
