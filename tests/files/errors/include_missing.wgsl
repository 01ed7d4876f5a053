#include "nowhere.inc"
