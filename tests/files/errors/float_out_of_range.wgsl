const a = 1e39f;
