"""The calibration of a judge: the stored set, verdicts on recorded episodes, figures, the history of results."""
