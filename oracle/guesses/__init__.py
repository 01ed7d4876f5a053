"""Grids, sizes and contents for a shader that does not state them: for corpora, and for new manifests."""
