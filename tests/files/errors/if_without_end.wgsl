const a = 1;
#if 1
const b = 1;
#else
