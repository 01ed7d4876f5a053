"""The process that runs wgpu, and how others speak to it.

Only that process imports wgpu: what a driver does to it, crash or hang, it does to nobody else, and it starts while
others still import what they need. So nothing here imports NumPy, nor anything else that takes long.
"""
