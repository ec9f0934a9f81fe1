"""Illustrations of lesson 3: one head, step by step."""
