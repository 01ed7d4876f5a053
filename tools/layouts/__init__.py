"""Brute force over the layouts that `bankshot advise` searches."""
