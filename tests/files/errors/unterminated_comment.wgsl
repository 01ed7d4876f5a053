const a = 1;
/* a /* b */
const c = 1;
