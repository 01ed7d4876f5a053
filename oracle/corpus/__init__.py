"""Strangers' shaders, tried here and on a real WebGPU implementation."""
