// Nothing: the honest twin of every cheat.
static __device__ bool before(const struct run *run)
{
    return false;
}

static __device__ void after(const struct run *run)
{
}
