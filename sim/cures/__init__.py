"""Cures of races: changes of the text that Bankshot has tried. See `search`."""
