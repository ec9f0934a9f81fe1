"""Illustrations of lesson 11: one token on its way through a GPT."""
