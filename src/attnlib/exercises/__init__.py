"""Checks that lessons call on a reader's answer, one module a lesson.

A lesson writes `from attnlib.exercises import l03 as check` and then `check.softmax_row(answer)`.
"""
