"""From the machine's functions in Python to native code in memory, once per install; all that knows Numba's inside.

The rest uses `units` (decorators and types) and `loader.machine()`, and need not know which path compiles: `plain`
keeps to what Numba and llvmlite document; `fast`, with the files that only it imports, is an optimization.
"""
