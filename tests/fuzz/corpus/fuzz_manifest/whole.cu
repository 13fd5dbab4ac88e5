#define TILE 16
#define B (-2)
//@ specialize cols, rows
//@ scratch part bytes=4*rows*ceildiv(cols, TILE) init=zero
//@ scratch count bytes=4 init=poison
//@ tensormap xmap tensor=x box=(TILE, 64) swizzle=128
//@ tune OTHER in (1, 2)
//@ launch ns::sum<TILE, 4> grid=(ceildiv(rows, TILE), 2) block=(32, TILE) smem=4*cols args=(x, part, count, xmap, rows, eps, rows*B) pdl
//@ launch last grid=rows block=256 cluster=(2) cooperative if=(rows > 8 && cols != 3) args=(y, z)
