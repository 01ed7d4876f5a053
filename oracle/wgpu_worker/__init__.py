"""The worker process that runs wgpu, and its protocol.

Only this process imports wgpu, so that a driver that crashes or hangs leaves all other processes unharmed. It starts
while they still import their modules; for that reason nothing in this package imports NumPy or anything else that is
slow to import.
"""
