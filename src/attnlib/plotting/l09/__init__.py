"""Illustrations of lesson 9: what one row can bring back, and two."""
