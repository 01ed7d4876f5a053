"""Attributes: where each is allowed, and diagnostic filters.

The parser counts their arguments; the checks of what an attribute is on interpret them. Spec: WGSL, "Attributes" and
"Diagnostic Filtering".
"""

from __future__ import annotations

from collections.abc import Callable

from ...fast_dataclass import frozen
from ..diagnostics import Diagnostic, Note, did_you_mean, fail
from ..source import Span
from ..syntax import tree


@frozen
class Rule:
    """The rule of an attribute: the places where it is allowed, and the extension it needs."""

    places: frozenset[str]
    extension: str | None = None


def _rule(places: str, extension: str | None = None) -> Rule:
    return Rule(frozenset(places.split(", ")), extension)


_IO = "struct member, parameter, return type"
_RESOURCE = "module-scope variable"
_FILTERED = "function, block, if, switch, switch body, loop, for, while"

ATTRIBUTES = {
    "align": _rule("struct member"),
    "binding": _rule(_RESOURCE),
    "blend_src": _rule("struct member", "dual_source_blending"),
    "builtin": _rule(_IO),
    "compute": _rule("function"),
    "diagnostic": _rule(_FILTERED),
    "fragment": _rule("function"),
    "group": _rule(_RESOURCE),
    "id": _rule("override"),
    "interpolate": _rule(_IO),
    "invariant": _rule(_IO),
    "location": _rule(_IO),
    "must_use": _rule("function"),
    "size": _rule("struct member"),
    "subgroup_size": _rule("function", "subgroup_size_control"),
    "vertex": _rule("function"),
    "workgroup_size": _rule("function"),
}

DIAGNOSTIC_RULES = ("derivative_uniformity", "subgroup_uniformity")

NeedExtension = Callable[[str, str, Span], None]


def check_attributes(
    attributes: list[tree.Attribute], place: str, need_extension: NeedExtension
) -> dict[str, tree.Attribute]:
    """Validate the attributes at a `place`, and return them by name, without `diagnostic`.

    Raises `WgslError` for an attribute that is unknown, misplaced or repeated.
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
        severity, rule_name = attribute.args
        assert isinstance(severity, tree.Ident)
        assert isinstance(rule_name, tree.Ident)
        rule = rule_name.name
        if rule in found:
            first = Note("first given here", found[rule][1])
            raise fail("duplicate-diagnostic", f"diagnostic rule '{rule}' is filtered twice", attribute.span, first)
        check_rule(rule, rule_name.span, warn)
        found[rule] = (severity.name, attribute.span)
    return {rule: severity for rule, (severity, _) in found.items()}


def global_filters(directives: list[tree.Directive], warn: Callable[[Diagnostic], None]) -> dict[str, str]:
    """Return the module's diagnostic filters, rule to severity. Raises `WgslError` for two severities of one rule."""
    found: dict[str, tuple[str, Span]] = {}
    for directive in directives:
        (severity, _), (rule, rule_span) = directive.names
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
