const a = b & 1u | c;
