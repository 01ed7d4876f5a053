"""Attributes: where each is allowed, how many arguments it takes, and diagnostic filters.

The checks of what an attribute is on interpret its arguments. Spec: WGSL, "Attributes" and "Diagnostic Filtering".
"""

from __future__ import annotations

from collections.abc import Callable

from ...fast_dataclass import frozen
from ..diagnostics import Diagnostic, Note, counted, did_you_mean, fail
from ..source import Span
from ..syntax import tree


@frozen
class Rule:
    """The rule of an attribute: fewest and most arguments, the places where it is allowed, the extension it needs."""

    least: int
    most: int
    places: frozenset[str]
    extension: str | None = None


def _rule(least: int, most: int, places: str, extension: str | None = None) -> Rule:
    return Rule(least, most, frozenset(places.split(", ")), extension)


_IO = "struct member, parameter, return type"
_RESOURCE = "module-scope variable"
_FILTERED = "function, block, if, switch, switch body, loop, for, while"

ATTRIBUTES = {
    "align": _rule(1, 1, "struct member"),
    "binding": _rule(1, 1, _RESOURCE),
    "blend_src": _rule(1, 1, "struct member", "dual_source_blending"),
    "builtin": _rule(1, 2, _IO),  # the second is a depth mode
    "compute": _rule(0, 0, "function"),
    "diagnostic": _rule(2, 2, _FILTERED),
    "fragment": _rule(0, 0, "function"),
    "group": _rule(1, 1, _RESOURCE),
    "id": _rule(1, 1, "override"),
    "interpolate": _rule(1, 2, _IO),
    "invariant": _rule(0, 0, _IO),
    "location": _rule(1, 1, _IO),
    "must_use": _rule(0, 0, "function"),
    "size": _rule(1, 1, "struct member"),
    "subgroup_size": _rule(1, 1, "function", "subgroup_size_control"),
    "vertex": _rule(0, 0, "function"),
    "workgroup_size": _rule(1, 3, "function"),
}

SEVERITIES = ("error", "warning", "info", "off")
DIAGNOSTIC_RULES = ("derivative_uniformity", "subgroup_uniformity")

NeedExtension = Callable[[str, str, Span], None]


def check_attributes(
    attributes: list[tree.Attribute], place: str, need_extension: NeedExtension
) -> dict[str, tree.Attribute]:
    """Validate the attributes at a `place`, and return them by name, without `diagnostic`.

    Raises `WgslError` for an attribute that is unknown, misplaced or repeated, or has a wrong number of arguments.
    """
    found: dict[str, tree.Attribute] = {}
    for attribute in attributes:
        name = attribute.name
        rule = ATTRIBUTES.get(name)
        if rule is None:
            hint = did_you_mean(name, ATTRIBUTES)
            raise fail("unknown-attribute", f"attribute '@{name}' is not known", attribute.span, hint=hint)
        if place not in rule.places:
            message = f"attribute '@{name}' is not allowed on a {place}"
            raise fail(
                "misplaced-attribute", message, attribute.span, hint=f"it goes on: {', '.join(sorted(rule.places))}"
            )
        if not rule.least <= len(attribute.args) <= rule.most:
            wanted = counted(rule.least, rule.most, "argument")
            message = f"attribute '@{name}' takes {wanted}, not {len(attribute.args)}"
            raise fail("attribute-arguments", message, attribute.span)
        if name in found:
            first = Note("first given here", found[name].span)
            raise fail("duplicate-attribute", f"attribute '@{name}' is given twice", attribute.span, first)
        if rule.extension:
            need_extension(rule.extension, f"attribute '@{name}'", attribute.span)
        if name != "diagnostic":
            found[name] = attribute
    return found


def word(expr: tree.Expr, known: tuple[str, ...], what: str, listed: str | None = None) -> str:
    """Return a context-dependent name in an attribute: `position`, `flat`, `off`. Raises `WgslError` if unknown, with
    the hint `listed` where no known name is similar."""
    if isinstance(expr, tree.Ident) and expr.args is None:
        if expr.name in known:
            return expr.name
        hint = did_you_mean(expr.name, known) or listed
        raise fail("unknown-name", f"'{expr.name}' is not {what}", expr.span, hint=hint)
    raise fail("unknown-name", f"this is not {what}", expr.span)


def filters(attributes: list[tree.Attribute], warn: Callable[[Diagnostic], None]) -> dict[str, str]:
    """Return the diagnostic filters among attributes, rule to severity. Raises `WgslError` for a repeated rule."""
    found: dict[str, tuple[str, Span]] = {}
    for attribute in attributes:
        if attribute.name != "diagnostic":
            continue
        severity = word(attribute.args[0], SEVERITIES, "a severity")
        rule_name = attribute.args[1]
        rule = rule_name.name if isinstance(rule_name, tree.Ident) else ""
        if rule in found:
            first = Note("first given here", found[rule][1])
            raise fail("duplicate-diagnostic", f"diagnostic rule '{rule}' is filtered twice", attribute.span, first)
        check_rule(rule, rule_name.span, warn)
        found[rule] = (severity, attribute.span)
    return {rule: severity for rule, (severity, _) in found.items()}


def global_filters(directives: list[tree.Directive], warn: Callable[[Diagnostic], None]) -> dict[str, str]:
    """Return the module's diagnostic filters, rule to severity. Raises `WgslError` for two severities of one rule."""
    found: dict[str, tuple[str, Span]] = {}
    for directive in directives:
        (severity, span), (rule, rule_span) = directive.names[0], directive.names[1]
        if severity not in SEVERITIES:
            hint = did_you_mean(severity, SEVERITIES)
            raise fail("unknown-name", f"'{severity}' is not a severity", span, hint=hint)
        if rule in found and found[rule][0] != severity:
            first = Note(f"'{found[rule][0]}' here", found[rule][1])
            message = f"diagnostic rule '{rule}' is given two severities"
            raise fail("conflicting-diagnostic", message, directive.span, first)
        check_rule(rule, rule_span, warn)
        found[rule] = (severity, directive.span)
    return {rule: severity for rule, (severity, _) in found.items()}


def check_rule(rule: str, span: Span, warn: Callable[[Diagnostic], None]) -> None:
    """Warn of an unknown rule; dotted names belong to other implementations."""
    if rule not in DIAGNOSTIC_RULES and "." not in rule:
        hint = did_you_mean(rule, DIAGNOSTIC_RULES)
        message = f"diagnostic rule '{rule}' is not known, so this filters nothing"
        warn(Diagnostic("warning", "unknown-diagnostic-rule", message, span, (), hint))
