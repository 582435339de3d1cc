"""The seven families. Siblings: none imports another."""
