"""From ir to the int32 program that the machine runs.

`build.build` lowers a pipeline and does all of it; the result is a `program.Program`, shown by
`bankshot run … --dump program`.
"""
