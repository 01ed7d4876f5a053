"""What a kernel is given, as bytes the machine can index, and what it leaves, in the form in which it was given."""
