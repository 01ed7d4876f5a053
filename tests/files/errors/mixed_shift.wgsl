const a = 1u + b * 2u << 3u;
