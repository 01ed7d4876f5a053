"""One pool of worker processes, the scheduler of an audit's cases, and progress on stderr.

A worker that dies is an error of its task.
"""
