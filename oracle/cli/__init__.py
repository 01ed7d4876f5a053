"""The command `bankshot`: one function for each subcommand, options, exit codes.

Parses arguments and prints; the work is done by the modules that it calls.
"""
