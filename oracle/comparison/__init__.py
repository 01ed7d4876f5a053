"""Whether two arrays agree, by a named rule, and a map of where they do not.

Knows nothing of kernels or manifests: arrays and a rule in, a result out.
"""
