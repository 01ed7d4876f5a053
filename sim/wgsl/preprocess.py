from .source import Source
def preprocess(text, name, *, defines=None, include_dirs=(), base_dir=None):
    return Source(text, name)
