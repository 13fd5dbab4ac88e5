//@ tune SUB in (1, 2, 4, 8, 16)
//@ tune LAYOUT in (0, 1) if LAYOUT == 0 || SUB > 1
//@ tune LOAD in (1, 4, 8)
//@ tune UNROLL in (8, 16, 32)
//@ tune SAME in (0, 1) if SAME == 0 || LOAD > 1
//@ tune BITS in (16, 32)
//@ tune FLUSH in (0, 32768) if (BITS == 32 && FLUSH == 0) || (BITS == 16 && FLUSH >= LAYOUT + SAME)
