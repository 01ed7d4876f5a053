"""The judge: runs WGSL in the simulator, on a GPU and against references, and compares. `README.md` has the map."""

if __name__ != "bankshot.oracle":  # a second copy of its classes would not be equal to the first
    raise ImportError("import it as bankshot.oracle")
