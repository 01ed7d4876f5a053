"""Reports, for people and for programs: terminal, JSON, CI, HTML and figures."""
