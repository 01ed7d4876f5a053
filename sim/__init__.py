"""Bankshot's simulator."""
