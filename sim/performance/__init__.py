"""How long a dispatch takes on a device: what it asks of each unit, from its program and its counters."""
