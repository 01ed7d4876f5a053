#include "parts/fine.inc"
const b = ;
