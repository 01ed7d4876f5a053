const a = 1;
#include "parts/broken.inc"
const b = 1;
