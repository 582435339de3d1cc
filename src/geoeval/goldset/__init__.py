"""A curated gold set and its replay: cases, what a runner returns, graders, outcomes, the journal of a replay."""
