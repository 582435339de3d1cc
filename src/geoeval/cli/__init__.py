"""Arguments, progress and exit codes; no arithmetic."""
