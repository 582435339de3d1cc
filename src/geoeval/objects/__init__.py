"""What the object families share: from two layers to pairs, from pairs to cells, from sums to figures."""
