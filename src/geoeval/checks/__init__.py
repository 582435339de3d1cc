"""What is wrong with data, as findings."""
