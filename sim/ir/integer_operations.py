"""Operations on integers that wrap alike whatever the sign: sums, differences, products and shifts to the left."""

SUMS = ("add_u32", "add_i32")
DIFFERENCES = ("sub_u32", "sub_i32")
PRODUCTS = ("mul_u32", "mul_i32")
LEFT_SHIFTS = ("shl_u32", "shl_i32")
