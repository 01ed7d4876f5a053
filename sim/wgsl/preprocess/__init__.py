"""From text with `#include`, `#define` and `#if` lines to plain WGSL, with a map of lines.

Other macro languages go through an external command.
"""
