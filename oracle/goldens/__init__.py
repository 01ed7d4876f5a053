"""Goldens: outputs and costs of a run that was accepted, stored beside the manifest."""
