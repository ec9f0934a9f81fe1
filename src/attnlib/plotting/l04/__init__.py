"""Illustrations of lesson 4: several heads, what each reads and what each adds."""
