"""Why an output differs from the expected one: the likely class of a mismatch, decided by reruns. See `causes`."""
