"""Illustrations of lesson 10: what caches take, and where heads are on several devices."""
