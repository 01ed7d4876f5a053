"""Why an output is not what it is to be: the likely class of a mismatch, decided by running again. See `classes`."""
