#include "executor/gpu/device/kernels_host.h"
#define KC_HOST
#include "executor/gpu/device/kernels_base.cu"
// The order matters.
#include "executor/gpu/device/kernels_inputs.cu"
// As above.
#include "executor/gpu/device/kernels.cu"

// The parameter number `at`, which has this type.
#define P(type, at) (*(type *)parameters[at])
#define RUN(name)                                                                                  \
    static void run_##name(void **parameters, const unsigned grid[3], const unsigned block[3])
#define UNUSED (void)grid, (void)block

RUN(inputs)
{
    UNUSED;
    kc_inputs(P(void *, 0), P(int, 1), P(int, 2), P(double, 3), P(double, 4), P(kc_u64, 5),
              P(kc_u64, 6), P(kc_u64, 7), P(kc_u64 *, 8));
}
RUN(inputs_quick)
{
    UNUSED;
    kc_inputs_quick(P(void *, 0), P(int, 1), P(int, 2), P(float, 3), P(float, 4), P(kc_u64, 5),
                    P(kc_u64, 6), P(kc_u64 *, 7));
}
RUN(poison)
{
    UNUSED;
    kc_poison(P(unsigned char *, 0), P(kc_u64, 1), P(kc_u64, 2));
}
RUN(pattern_fill)
{
    UNUSED;
    kc_pattern_fill(P(struct kc_zones, 0), P(kc_u64, 1));
}
RUN(pattern_check)
{
    UNUSED;
    kc_pattern_check(P(struct kc_zones, 0), P(kc_u64, 1), P(kc_u64 *, 2));
}
RUN(zero_check)
{
    UNUSED;
    kc_zero_check(P(kc_u64 *, 0), P(kc_u64, 1), P(kc_u64 *, 2));
}
RUN(local_512)
{
    UNUSED;
    kc_local_512(P(kc_u64, 0), P(kc_u64 *, 1));
}
RUN(local_4096)
{
    UNUSED;
    kc_local_4096(P(kc_u64, 0), P(kc_u64 *, 1));
}
RUN(local_16384)
{
    UNUSED;
    kc_local_16384(P(kc_u64, 0), P(kc_u64 *, 1));
}
RUN(shared_poison)
{
    UNUSED;
    kc_shared_poison(P(unsigned, 0), P(kc_u64, 1));
}
RUN(digest)
{
    UNUSED;
    kc_digest(P(void *, 0), P(int, 1), P(kc_u64, 2), P(kc_u64, 3), P(kc_u64, 4), P(kc_u64 *, 5));
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
    kc_stamp(P(kc_u64 *, 0), P(kc_u64, 1), P(kc_u64, 2), P(kc_u64 *, 3), P(kc_u64, 4));
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
    {"kc_inputs", run_inputs},
    {"kc_inputs_quick", run_inputs_quick},
    {"kc_poison", run_poison},
    {"kc_pattern_fill", run_pattern_fill},
    {"kc_pattern_check", run_pattern_check},
    {"kc_zero_check", run_zero_check},
    {"kc_shared_poison", run_shared_poison},
    {"kc_local_512", run_local_512},
    {"kc_local_4096", run_local_4096},
    {"kc_local_16384", run_local_16384},
    {"kc_digest", run_digest},
    {"kc_compare", run_compare},
    {"kc_stamp", run_stamp},
    {"kc_spin", run_spin},
    {"kc_copy", run_copy},
    {"kc_read", run_read},
    {"kc_health", run_health},
};
const unsigned kc_host_kernel_count = sizeof(kc_host_kernels) / sizeof(kc_host_kernels[0]);
