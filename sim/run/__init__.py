"""`simulate` and what a run reports: one dispatch, its counters, traffic, coverage and output bounds.

Ties together the front end, codegen, launch and findings.
"""
