"""Probes, shadow memory and error bounds: instructions added to ir.

Instrumentation never changes what the program computes.
"""
