"""What textures and samplers are in the machine's memory: words that a launch lays out and a program reads.

A texture is a table of its levels and their number, then its texels from byte `TEXELS` on: row by row, layer by
layer, level by level, each as four words (f32, i32 or u32) whatever its format is, and last a border: what is read
where no texel is. A sampler is `SAMPLER_WORDS` words.
"""

from __future__ import annotations

MAX_LEVELS = 16

# words of a texture: one row for each level, and then what all levels share
WIDTH, HEIGHT, DEPTH, FIRST = range(
    4
)  # of a level; DEPTH: or layers, faces or samples; FIRST: number of its first texel
ROW = 4
LEVELS = MAX_LEVELS * ROW

TEXELS = 2048  # byte offset: a line of the smallest texels is as long
TEXEL_BYTES = 16

# words of a sampler
MODES = 0  # how coordinates are kept inside, along each of three axes
MAG, MIN, MIP = 3, 4, 5  # NEAREST or LINEAR
LOWEST, HIGHEST = 6, 7  # level of detail, f32
COMPARE = 8  # the sum of LESS, EQUAL and GREATER where the comparison holds for them
SAMPLER_WORDS = 9

CLAMP, REPEAT, MIRROR = 0, 1, 2
NEAREST, LINEAR = 0, 1
LESS, EQUAL, GREATER = 1, 2, 4
