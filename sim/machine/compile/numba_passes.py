"""The passes that a function of the machine goes through: of Numba's those that it needs, and `Fill`.

It has no closures, generators, exceptions, lists or parallel loops, and nothing that references are counted of: so no
variable has to be deleted, which takes Numba a load and a store for each, and LLVM the time to see that they are idle.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

import operator
from typing import Any, ClassVar

from numba import types
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.ssa import reconstruct_ssa
from numba.core.typed_passes import NativeLowering, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.untyped_passes import FixupArgs, TranslateByteCode

from .inlining import fill
from .numba_codegen import library


@register_pass(mutates_CFG=True, analysis_only=False)
class Fill(FunctionPass):
    """Put the pieces of a function in their places."""

    _name = "bankshot_fill"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> Any:
        fill(state.func_ir)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class Versions(FunctionPass):
    """A variable for each assignment, so that it may have another type after another."""

    _name = "bankshot_versions"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> Any:
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir.generator_info = None
        return True


class _Typing:
    """Numba's typing context, which remembers what each function makes of which types: Numba tries all that a name like
    `+` may mean at every place, and goes through all places twice or more."""

    known: ClassVar[dict[Any, tuple[Any, Any]]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """The signature, as the context resolves it. Who is known stays alive, so that its identity is its own."""
        if isinstance(function, types.Dispatcher) or keywords:
            return self._context.resolve_function_type(function, arguments, keywords)
        key = (id(function), tuple(arguments))
        if key not in self.known:
            self.known[key] = function, self._context.resolve_function_type(function, arguments, keywords)
        return self.known[key][1]


@register_pass(mutates_CFG=True, analysis_only=False)
class Typed(NopythonTypeInference):
    """Type inference, with a memory."""

    _name = "bankshot_types"

    def run_pass(self, state: Any) -> Any:
        context, state.typingctx = state.typingctx, _Typing(state.typingctx)
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = context


@register_pass(mutates_CFG=True, analysis_only=False)
class Joined(PreLowerStripPhis):
    """One variable for those that meet: LLVM finds out by itself which is alive where."""

    _name = "bankshot_joined"

    def run_pass(self, state: Any) -> Any:
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        return True


class _Lower(Lower):
    """Numba's own, but what an operator means of which types is remembered here, too."""

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        return self._result(op, self.fndesc.calltypes[expr], (expr.lhs, expr.rhs), resty)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        return self._result(operator.getitem, signature, (value, index), resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        return self._result(operator.setitem, signature, (target_var, index_var, value_var), types.none)

    def _result(self, operation: Any, signature: Any, operands: tuple[Any, ...], kind: Any) -> Any:
        values = [self._cast_var(var, wanted) for var, wanted in zip(operands, signature.args, strict=True)]
        typing = _Typing(self.context.typing_context)
        known = typing.resolve_function_type(operation, signature.args, {})
        value = self.context.get_function(typing.resolve_value_type(operation), known)(self.builder, values)
        return self.context.cast(self.builder, value, signature.return_type, kind)


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowered(NativeLowering):
    """LLVM's instructions."""

    _name = "bankshot_lowered"

    @property
    def lowering_class(self) -> Any:
        return _Lower


_PASSES = (
    *(TranslateByteCode, FixupArgs, Fill, Versions),
    *(Typed, Joined, Lowered, NoPythonBackend),
)


class Pipeline(CompilerBase):
    """These passes, into a `Library`."""

    def define_pipelines(self) -> Any:
        self.state.library = library(self.state.func_id.func_qualname)
        manager = PassManager("bankshot")
        for each in _PASSES:
            manager.add_pass(each, each.__name__)
        manager.finalize()
        return [manager]
