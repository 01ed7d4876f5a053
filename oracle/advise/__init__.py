"""Search for better layouts of workgroup arrays: derive variants of the shader, run them, and compare their costs."""
