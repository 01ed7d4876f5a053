const tile = 24;
const_assert tile % 16 == 0;
