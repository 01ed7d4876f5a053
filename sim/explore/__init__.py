"""Every execution of a small dispatch: an explicit-state search over ir, with sequentially consistent or weak memory.

It runs apart from the machine: invocations step one at a time, and states are copied, hashed and compared.
"""
