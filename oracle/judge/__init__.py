"""Verdicts: one case run in every way there is, its outputs and counters compared.

Reports read the results; nothing here prints.
"""
