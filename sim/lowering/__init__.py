"""From a typed module to ir: calls are inlined, composites become scalars, views become addresses.

Each file lowers one part of the language; `lower.lower` is the entry.
"""
