"""Probes inserted into a shader's text, which make a real GPU record its accesses, and analyses of these records."""
