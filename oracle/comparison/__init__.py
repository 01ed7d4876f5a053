"""Array comparison by named output rules, with a map of the elements that differ.

Takes arrays and a rule and returns a result; knows nothing of kernels or manifests.
"""
