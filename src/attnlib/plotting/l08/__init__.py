"""Illustrations of lesson 8: heads scored, over several seeds."""
