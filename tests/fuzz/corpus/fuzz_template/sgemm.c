//@ tune ORDER in (0, 1)
//@ tune PACK in (0, 1, 2, 3) if ORDER == 0 || PACK == 0
//@ tune MR in (1, 2, 4, 6, 8) if PACK < 3 || MR >= 4
//@ tune NV in (1, 2, 4) if PACK < 3 || NV >= 2
//@ tune VW in (1, 4, 8, 16) if PACK < 3 || VW >= 8
//@ tune KB in (4, 64, 256)
