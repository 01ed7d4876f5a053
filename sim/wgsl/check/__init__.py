"""Syntax tree to typed module (`check_module.check`), and typed module to pipeline (`pipeline.create_pipeline`).

Raises `WgslError` for every shader-creation and pipeline-creation error of the WGSL spec.
Imports every other folder of `wgsl` but `preprocess`; none imports it.
"""
