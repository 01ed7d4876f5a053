"""The layout of textures and samplers in the machine's memory: words that a launch writes and a program reads.

A texture is a table of its levels and their number, then from byte `TEXELS` on its texels, row by row, layer by layer,
level by level. Each is four words (f32, i32 or u32), whatever its format. Last comes the border texel, the result of
loads outside. A sampler is `SAMPLER_WORDS` words.
"""

from __future__ import annotations

MAX_LEVELS = 16

# words of a texture: a row per level, then what all levels share
# of a level; DEPTH: or layers, faces or samples; FIRST: the number of its first texel
WIDTH, HEIGHT, DEPTH, FIRST = range(4)
ROW = 4
LEVELS = MAX_LEVELS * ROW

TEXELS = 2048  # byte offset
TEXEL_BYTES = 16

# words of a sampler
MODES = 0  # address mode along each of three axes
MAG, MIN, MIP = 3, 4, 5  # NEAREST or LINEAR
LOWEST, HIGHEST = 6, 7  # LOD clamp, f32
COMPARE = 8  # the bits LESS, EQUAL and GREATER for which the comparison holds
SAMPLER_WORDS = 9

CLAMP, REPEAT, MIRROR = 0, 1, 2
NEAREST, LINEAR = 0, 1
LESS, EQUAL, GREATER = 1, 2, 4
