const a = 0123;
