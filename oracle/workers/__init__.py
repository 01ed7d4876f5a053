"""One pool of worker processes for audit, corpus and sweep, a fork per round for watch, and progress on stderr.

A worker that dies or takes too long fails only its own task.
"""
