"""Random kernels whose invocations sum products of a few factors, as tiled matmuls do, in many forms.

Factors come from workgroup memory and storage at addresses of every pattern, from uniforms, and from arithmetic; sums
are taken in any order, in loops of several forms, and sometimes stored halfway.
"""

from __future__ import annotations

import random

WORDS = 1 << 12  # of `x`, and of workgroup memory `w`
HEAD = f"""
@group(0) @binding(0) var<storage, read> x: array<f32, {WORDS}>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> same: vec4<f32>;
@group(0) @binding(3) var<uniform> turns: u32;
@group(0) @binding(4) var<storage, read> v: array<vec4<f32>, {WORDS // 4}>;
var<workgroup> w: array<f32, {WORDS}>;
"""
# Index of a word by lane `i`, and a number that all lanes share.
PATTERNS = (
    "i / 16u * 17u + {0}",
    "i / 16u + {0} * 64u",
    "i % 16u * 4u + {0}",
    "i % 16u + {0} * 16u",
    "i % 32u * 2u + {0}",
    "i + {0} * 64u",
    "(i * 37u + {0}) % 1024u",
    "{0} * 3u",
    "i * 5u + {0}",  # may be outside
    "i * i * 64u + {0}",  # is
)
# A sum, and the factors of what is added to it.
FORMS = ("{0} += {1} * {2};", "{0} += {1} * {2};", "{0} = {1} * {2} + {0};", "{0} = fma({1}, {2}, {0});")


class Maker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.size = self._random.choice((1, 16, 20, 48, 64, 100, 256))

    def program(self) -> str:
        pick = self._random
        self._rows, self._columns = pick.choice(((1, 1), (1, 4), (4, 4), (4, 1), (2, 3), (5, 4), (8, 8), (4, 6)))
        names = [f"s{i}_{j}" for i in range(self._rows) for j in range(self._columns)]
        out = "\n".join(f"y[at + {n}u] = {name};" for n, name in enumerate(names))
        return f"""{HEAD}
            @compute @workgroup_size({self.size})
            fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {{
                for (var n = i; n < {WORDS}u; n += {self.size}u) {{ w[n] = x[n ^ 1u]; }}
                workgroupBarrier();
                let at = (group.x * {self.size}u + i) * {len(names)}u;
                {"".join(f"var {name} = same.w * {n}.0;" for n, name in enumerate(names))}
                {self._loop() if pick.random() < 0.8 else self._step("1u")}
                {out}
            }}"""

    def _loop(self) -> str:
        body = "".join(self._step(f"k + {n}u") for n in range(self._random.choice((1, 1, 2))))
        extra = self._random.choice(
            (
                "",
                "",
                "",
                "if k == 5u { break; }",
                "s0_0 += 1.0;",
                "y[at] = s0_0;",
                "workgroupBarrier();",
                "if (i + k) % 3u == 0u { s0_0 -= 0.5; }",
                "w[(i * 31u + k) % 64u] = s0_0; ",
            )
        )
        inner = f"for (var k = 0u; k < turns; k++) {{ {body} {extra} }}"
        return inner if self._random.random() < 0.7 else f"for (var o = 0u; o < 2u; o++) {{ {inner} }}"

    def _step(self, k: str) -> str:
        """One product for each sum."""
        pick = self._random
        mixed = pick.random() < 0.2
        a, b = ([self._pattern() for _ in range(2)] for _ in "ab")
        lines = [f"let a{i} = {self._factor(a[mixed and i % 2], k, i)};" for i in range(self._rows)]
        lines += [f"let b{j} = {self._factor(b[mixed and j % 2], k, j)};" for j in range(self._columns)]
        written = pick.choice(FORMS)
        sums = [written.format(f"s{i}_{j}", f"a{i}", f"b{j}") for i in range(self._rows) for j in range(self._columns)]
        if pick.random() < 0.3:
            pick.shuffle(sums)
        if pick.random() < 0.1:
            sums.pop()
        return "{" + "\n".join([*lines, *sums]) + "}"

    def _pattern(self) -> str:
        array = self._random.choice(("w", "w", "x"))
        index = self._random.choice(PATTERNS)
        return self._random.choice(
            (*(f"{array}[{index}]",) * 6, "same.x", "v[{0}].y", "v[(i + {0}) % 64u].z", f"({array}[{index}] - 0.25)")
        )

    def _factor(self, pattern: str, k: str, number: int) -> str:
        return pattern.format(f"(({k}) * 4u + {number}u)")
