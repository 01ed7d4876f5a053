"""The SIMT machine: runs the instructions of a program on all lanes of a batch of workgroups.

It is compiled once with Numba, and runs every program. `core.run` is its entry point; `layout`, `instruction` and
`opcodes` declare what it shares with the rest of Bankshot. It does not depend on WGSL.
"""
