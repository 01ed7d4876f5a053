"""Why an output differs from what is expected: the likely class of a mismatch, decided by rerunning. See `causes`."""
