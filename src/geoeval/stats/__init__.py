"""Numbers that know no geometry: tallies, intervals, redraws, rankings, calibration, area estimation."""
