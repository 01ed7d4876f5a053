"""Errors that a type checker must find."""

import bankshot

bankshot.simulat("", grid=1)
bankshot.simulate("", gird=1)
