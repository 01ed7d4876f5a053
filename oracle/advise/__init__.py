"""Other layouts of workgroup arrays: found in the text, run, and held against each other."""
