"""Probes written into a shader's own text, so that a real GPU counts, and what is made of their records."""
