"""Illustrations of lesson 7: what a model is made of."""
