"""The claims ledger: what five documents about WGSL kernels say, and what running those kernels says to it.

`ledger` has the verbs and the verdicts, `bench` runs kernels, `timing` reads measured times, which `measure` takes, and
`report` prints; each `document_NNN` decides the claims of one document, a function a claim. The kernels are those in
`shaders/`, which the functions name: this is the one room that knows them, and nothing imports it but the command line.
"""
