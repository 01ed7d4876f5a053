"""The current value of each variable, for the uniformity analysis: a layer of changes for each branch.

A branch costs as much as the variables that it changes, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .. import typed
from .uniformity_graph import Node, depends_on

Changes: TypeAlias = dict[typed.Variable, Node]


class Values:
    """Values of variables: `own` changes on top of those `before`.

    In a `loop`, a value is that before the loop or at the end of an iteration. Its node is made when it is first used.
    """

    def __init__(self, before: Values | None = None, *, loop: bool = False) -> None:
        self._before = before
        self._loop = loop
        self.own: Changes = {}

    def get(self, variable: typed.Variable) -> Node | None:
        """Return the value of a variable; None if it is not tracked, or not declared yet."""
        node = self.own.get(variable)
        if node is None and self._before is not None:
            node = self._before.get(variable)
            if self._loop and node is not None:
                node = self.own[variable] = depends_on(node)
        return node

    def __contains__(self, variable: typed.Variable) -> bool:
        return self.get(variable) is not None

    def __getitem__(self, variable: typed.Variable) -> Node:
        node = self.get(variable)
        assert node is not None
        return node

    def __setitem__(self, variable: typed.Variable, node: Node) -> None:
        self.own[variable] = node

    def since(self, base: Values) -> Changes:
        """Return all changes on top of `base`."""
        layers: list[Changes] = []
        layer = self
        while layer is not base:
            layers.append(layer.own)
            assert layer._before is not None
            layer = layer._before
        return {variable: node for own in reversed(layers) for variable, node in own.items()}

    def joined(self, states: Sequence[Changes]) -> Values:
        """Continue from any of these states, given as changes on top of these values. Without one, nothing changes."""
        for variable in dict.fromkeys(variable for state in states for variable in state):
            now = self.get(variable)
            if now is not None:  # declared before
                nodes = {id(node): node for state in states for node in [state.get(variable, now)]}
                self.own[variable] = depends_on(*nodes.values()) if len(nodes) > 1 else next(iter(nodes.values()))
        return self

    def iterates(self, end: Changes) -> None:
        """Let the values at the start of an iteration depend on those at the end of one."""
        for variable in {**self.own, **end}:
            node = self.get(variable)
            if node is not None:
                node.edges.append(end.get(variable, node))
