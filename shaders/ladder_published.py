"""What kernels of ladder.wgsl store as they were published, at sizes for which they are not made.

An element whose value WGSL leaves open has no bound.
"""

import numpy as np

from bankshot.oracle import references


def past_the_row(arrays, dims):
    """A tile of four columns stores past a row whose length is no multiple of four: what two invocations store, and the
    last element, to which a store past the end may go, is open."""
    product = references.find("product")(arrays, dims)["C"]
    bound = np.array(product.bound)
    beyond = -dims["N"] % 4
    bound[1:, :beyond] = np.inf
    bound[-1, -1] = np.inf if beyond else bound[-1, -1]
    return {"C": references.Expected(product.value, bound)}


def first_workgroups(arrays, dims):
    """Only whole workgroups of 256 outputs are dispatched: the others keep what the buffer holds."""
    product = references.find("product")(arrays, dims)["C"]
    left = dims["M"] * dims["N"] // 256 * 256
    value, bound = np.array(product.value), np.array(product.bound)
    value.reshape(-1)[left:] = arrays["C"].reshape(-1)[left:]
    bound.reshape(-1)[left:] = 0
    return {"C": references.Expected(value, bound)}
