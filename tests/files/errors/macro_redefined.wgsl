#define N 4
#define N 8
