"""Manifests: what to run, on which data and shapes, and what to expect; and what a shader says of its bindings."""
