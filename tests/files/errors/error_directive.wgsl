#ifndef TILE
#error TILE must be defined
#endif
