"""Findings: what a run did that a GPU would punish or hide, from the machine's records to sentences with a place.

`table` has a row for each kind, `explain` reads the records of a run, and `replay` reruns it to decide what matters.
"""
