#if TILE > 4
#endif
