"""Shaders of other projects, run in the simulator and on a real WebGPU implementation."""
