"""From ir to the int32 program that the machine runs: emission, registers, outer products, copies.

`build.build` is the entry; a finished program is a `program.Program`.
"""
