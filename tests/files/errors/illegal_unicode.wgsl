// fine: 😀
const a😀 = 1;
