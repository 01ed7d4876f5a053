"""The command line: one module for each subcommand, the options they share, and exit codes.

Commands parse arguments and print; the modules that they call do the work. `main` lists the commands and imports one
when it runs.
"""
