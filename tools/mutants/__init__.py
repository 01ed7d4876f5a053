"""Mutation testing: small faults in `sim` and `oracle`, one at a time, which the tests of their room must find."""
