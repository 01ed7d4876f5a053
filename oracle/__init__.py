"""The judge: runs the same WGSL in the simulator, on a GPU and against NumPy, and says where they differ."""
