"""`python -m oracle` is `bankshot`. Nothing else is to import this: it makes the process one of short life."""

import atexit
import gc

# What a command makes lives to its end. Looking for garbage in it took a fifth of a short audit, a half of that when
# everything was over.
gc.set_threshold(100_000, 50, 100)
atexit.register(gc.freeze)

from .cli import main  # noqa: E402

if __name__ == "__main__":
    main(prog_name="bankshot")
