"""One launch of a program: its arrays, its threads, the order of its invocations, and what is watched on the way."""
