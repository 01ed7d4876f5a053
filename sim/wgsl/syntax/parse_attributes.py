"""The part of the parser for attributes: `@name` and `@name(…)`, with as many parameters as the grammar allows.

The checker decides where an attribute may be and what its values mean. Spec: WGSL, "Attributes".
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from ..diagnostics import Note, counted, fail
from ..source import Span
from . import tree
from .lexer import IDENTIFIER, Token
from .other_languages import ATTRIBUTES
from .parse_expressions import ExpressionParser

# Fewest and most parameters. `const` is in the grammar, but the checker rejects it: only the spec uses it.
_PARAMETERS = {
    "align": (1, 1),
    "binding": (1, 1),
    "blend_src": (1, 1),
    "builtin": (1, 2),  # the second is a depth mode
    "compute": (0, 0),
    "const": (0, 0),
    "diagnostic": (2, 2),
    "fragment": (0, 0),
    "group": (1, 1),
    "id": (1, 1),
    "interpolate": (1, 2),
    "invariant": (0, 0),
    "location": (1, 1),
    "must_use": (0, 0),
    "size": (1, 1),
    "subgroup_size": (1, 1),
    "vertex": (0, 0),
    "workgroup_size": (1, 3),
}
_EXAMPLES = {
    "align": "16",
    "builtin": "global_invocation_id",
    "diagnostic": "off, derivative_uniformity",
    "interpolate": "flat",
    "size": "16",
    "workgroup_size": "64",
}
_LISTED = "one of " + ", ".join(name for name in _PARAMETERS if name != "const")
_BUILTIN_VALUE = re.compile(r"\w+_(?:id|index|workgroups|size|subgroups)|position|thread\w*")
_SEVERITIES = ("error", "warning", "info", "off")


def _attribute_habit(name: str) -> str | None:
    """Return the hint for an attribute of another language, or for a built-in value in the place of one."""
    if name in ATTRIBUTES:
        return ATTRIBUTES[name]
    return f"a built-in value is written @builtin({name})" if _BUILTIN_VALUE.fullmatch(name) else None


class AttributeParser(ExpressionParser):
    """Parses attributes at the cursor."""

    def attributes(self) -> list[tree.Attribute]:
        """attribute *"""
        found: list[tree.Attribute] = []
        while self.token.kind == "@":
            found.append(self.attribute())
        return found

    def attribute(self) -> tree.Attribute:
        """attribute : '@' ident_pattern_token ( '(' expression ( ',' expression ) * ',' ? ')' ) ?
        diagnostic_attr : '@' 'diagnostic' diagnostic_control
        """
        start = self.advance().start
        name = self.token
        if name.kind not in (IDENTIFIER, "const", "diagnostic"):
            raise self.expected("the name of an attribute", "after '@'")
        self.advance()
        if name.text not in _PARAMETERS:
            message = f"there is no attribute '{name.text}'"
            similar = get_close_matches(name.text, _PARAMETERS, n=1)
            hint = _attribute_habit(name.text) or (f"did you mean '{similar[0]}'?" if similar else _LISTED)
            raise fail("unknown-attribute", message, self.span_of(name), hint=hint)
        if name.text == "diagnostic":
            args: list[tree.Expr] = [
                tree.Ident(span, text, None, span) for text, span in self.diagnostic_control("'@diagnostic'")
            ]
        elif _PARAMETERS[name.text][1] and self.token.kind == "(":
            self.advance()
            args = self.comma_list(self.expression, ")", f"the parameter of '@{name.text}'")
        else:
            args = []
        self.check_count(name, len(args))
        return tree.Attribute(self.span_from(start), name.text, args)

    def check_count(self, name: Token, count: int) -> None:
        least, most = _PARAMETERS[name.text]
        if not least <= count <= most:
            message = f"'@{name.text}' takes {counted(least, most, 'parameter')}, {count} given"
            example = _EXAMPLES.get(name.text, "0")
            hint = f"for example @{name.text}({example})" if least else f"write @{name.text} alone"
            raise fail("wrong-parameter-count", message, self.span_of(name), hint=hint)

    def diagnostic_control(self, what: str) -> list[tuple[str, Span]]:
        """diagnostic_control : '(' severity_control_name ',' diagnostic_rule_name ',' ? ')'
        diagnostic_rule_name : ident_pattern_token ( '.' ident_pattern_token ) ?
        """
        self.expect("(", f"after {what}")
        severity = self.name("a severity")
        if severity.text not in _SEVERITIES:
            message = f"there is no severity '{severity.text}'"
            raise fail("unknown-severity", message, self.span_of(severity), hint="one of " + ", ".join(_SEVERITIES))
        self.expect(",", "after the severity")
        rule = self.name("a diagnostic rule")
        text = rule.text
        if self.accept("."):
            text += "." + self.name("a diagnostic rule").text
        rule_span = self.span_from(rule.start)
        self.accept(",")
        self.expect(")", "after the diagnostic rule")
        return [(severity.text, self.span_of(severity)), (text, rule_span)]

    def start_of(self, attributes: list[tree.Attribute]) -> int:
        """Return the offset at which the construct begins whose attributes were just parsed."""
        return attributes[0].span.start if attributes else self.token.start

    def close_brace(self, opened: Token, what: str, hint: str | None) -> None:
        """Step over the `}` that ends `what`. The error of a missing one shows where the block was opened."""
        if not self.accept("}"):
            opening = Note("opened here", self.span_of(opened))
            raise self.expected("'}'", f"at the end of {what}", opening, hint=hint)
