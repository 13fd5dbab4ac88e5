//@ tune A in (1, -2)
//@ tune B in (4) if A != 0 && B % A == 0
int x;
