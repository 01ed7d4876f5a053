"""Running: the scalar semantics, and the SIMT machine that is jitted once and runs every program."""
