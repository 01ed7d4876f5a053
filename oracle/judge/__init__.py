"""Verdicts: a case run by the simulator, a reference and GPUs, and all results compared.

Returns records for reports and prints nothing.
"""
