"""The place of every key and value of a TOML text."""

import pytest

from bankshot.sim.device_files.toml_places import places

TEXT = '''# a comment with = and [
plain = 1
"quoted key" = 'literal # no comment'
a . "b.c" = [1, # one
  [2, "]"], {x = 3}]
date = 1979-05-27 07:32:00 # with a blank

[ table . 'inner' ]
many = """
key = 1 \\""" ""more"""
inline = { x = 1, "y z" = { w = "}" } }
none = ""
[[rows]]
cell = -1.5e3
'''


def taken(extent):
    return TEXT[slice(*extent.key)], TEXT[slice(*extent.value)]


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        (("plain",), "plain", "1"),
        (("quoted key",), '"quoted key"', "'literal # no comment'"),
        (("a", "b.c"), 'a . "b.c"', '[1, # one\n  [2, "]"], {x = 3}]'),
        (("date",), "date", "1979-05-27 07:32:00"),
        (("table", "inner"), "table . 'inner'", "table . 'inner'"),
        (("table", "inner", "many"), "many", '"""\nkey = 1 \\""" ""more"""'),
        (("table", "inner", "inline"), "inline", '{ x = 1, "y z" = { w = "}" } }'),
        (("table", "inner", "inline", "x"), "x", "1"),
        (("table", "inner", "inline", "y z", "w"), "w", '"}"'),
        (("table", "inner", "none"), "none", '""'),
        (("rows", "cell"), "cell", "-1.5e3"),
    ],
)
def test_where_a_key_and_its_value_are(name, key, value):
    assert taken(places(TEXT)[name]) == (key, value)
