#include "executor/gpu/kernels_host.h"
#define KC_HOST
#include "executor/gpu/kernels.cu"

// The parameter number `at`, which has this type.
#define P(type, at) (*(type *)parameters[at])
#define RUN(name)                                                                                  \
    static void run_##name(void **parameters, const unsigned grid[3], const unsigned block[3])
#define UNUSED (void)grid, (void)block

RUN(fill)
{
    UNUSED;
    kc_fill(P(void *, 0), P(int, 1), P(int, 2), P(double, 3), P(double, 4), P(kc_u64, 5),
            P(kc_u64, 6), P(kc_u64, 7));
}
RUN(poison)
{
    UNUSED;
    kc_poison(P(unsigned char *, 0), P(kc_u64, 1), P(kc_u64, 2));
}
RUN(guard_fill)
{
    UNUSED;
    kc_guard_fill(P(struct kc_zones, 0), P(kc_u64, 1));
}
RUN(guard_check)
{
    UNUSED;
    kc_guard_check(P(struct kc_zones, 0), P(kc_u64, 1), P(kc_u64 *, 2));
}
RUN(shared_poison)
{
    UNUSED;
    kc_shared_poison(P(unsigned, 0), P(kc_u64, 1));
}
RUN(hash)
{
    UNUSED;
    kc_hash(P(unsigned char *, 0), P(kc_u64, 1), P(kc_u64, 2), P(kc_u64 *, 3));
}
RUN(compare)
{
    UNUSED;
    kc_compare(P(void *, 0), P(int, 1), P(double, 2), P(double, 3), P(int, 4), P(double *, 5),
               P(double *, 6), P(kc_u64, 7), P(kc_u64 *, 8));
}
RUN(stamp)
{
    UNUSED;
    kc_stamp(P(kc_u64 *, 0));
}
RUN(spin)
{
    UNUSED;
    kc_spin(P(kc_u64, 0));
}
RUN(copy)
{
    UNUSED;
    kc_copy(P(unsigned char *, 0), P(unsigned char *, 1), P(kc_u64, 2));
}
RUN(read)
{
    UNUSED;
    kc_read(P(unsigned char *, 0), P(kc_u64, 1), P(kc_u64 *, 2));
}
RUN(health)
{
    UNUSED;
    kc_health(P(kc_u64 *, 0), P(kc_u64, 1), P(kc_u64, 2));
}

const struct kc_host_kernel kc_host_kernels[] = {
    {"kc_fill", run_fill},
    {"kc_poison", run_poison},
    {"kc_guard_fill", run_guard_fill},
    {"kc_guard_check", run_guard_check},
    {"kc_shared_poison", run_shared_poison},
    {"kc_hash", run_hash},
    {"kc_compare", run_compare},
    {"kc_stamp", run_stamp},
    {"kc_spin", run_spin},
    {"kc_copy", run_copy},
    {"kc_read", run_read},
    {"kc_health", run_health},
};
const unsigned kc_host_kernel_count = sizeof(kc_host_kernels) / sizeof(kc_host_kernels[0]);
