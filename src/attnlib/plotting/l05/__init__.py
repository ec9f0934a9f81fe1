"""Illustrations of lesson 5: blocks, and the stream that runs through them."""
