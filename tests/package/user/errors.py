"""Errors that a type checker must find in a program: one on each line with a comment."""

import bankshot

bankshot.simulat("", grid=1)  # a misspelled name
bankshot.simulate("", gird=1)  # a misspelled argument
bankshot.simulate("", grid="1")  # a grid of text
bankshot.simulate("", grid=1, bindings={"x": object()})  # a value that cannot be bound
run = bankshot.simulate("", grid=1)
run.outputs["x"].sum()  # may be bytes
print(run.sites[0].wavefronts)  # no counter
print(run.findings[0].colour)  # no member
