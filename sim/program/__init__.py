"""Meaning: from the typed module to the int32 program that the machine runs."""
