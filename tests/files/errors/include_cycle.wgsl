#include "parts/cycle.inc"
