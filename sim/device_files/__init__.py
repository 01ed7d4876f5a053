"""Device profiles as TOML files: each figure of a `Device`, its source, and measured costs.

`find` turns a name, a file or a profile into a profile, `read_profile` reads a file, and `write_profile` writes a file
that reads back equal. An invalid file is a `WgslError` at the line and column of what is wrong.
"""

from .find import DeviceChoice, find, is_file, read_profile, shipped, with_times
from .writer import write_profile

__all__ = ["DeviceChoice", "find", "is_file", "read_profile", "shipped", "with_times", "write_profile"]
