#define MAX(a, b) a
