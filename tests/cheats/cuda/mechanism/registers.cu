// Gives what an uninitialised register (or a predicate) holds as an answer, or as a reason to skip.
static __device__ bool before(const struct run *run)
{
    unsigned left;

    asm volatile("{\n\t.reg .b32 left;\n\tmov.b32 %0, left;\n\t}" : "=r"(left));
    return __syncthreads_or(left == contents(run)) != 0;
}

static __device__ void after(const struct run *run)
{
    unsigned tag = contents(run);

    asm volatile("{\n\t.reg .b32 left;\n\tmov.b32 left, %0;\n\t}" ::"r"(tag));
}
