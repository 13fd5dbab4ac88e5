// The executor's kernels as host functions, for the fake driver of the tests: each runs a whole grid.
#ifndef EXECUTOR_GPU_KERNELS_HOST_H
#define EXECUTOR_GPU_KERNELS_HOST_H

struct kc_host_kernel {
    const char *name;
    void (*run)(void **parameters, const unsigned grid[3], const unsigned block[3]);
};

extern const struct kc_host_kernel kc_host_kernels[];
extern const unsigned kc_host_kernel_count;

#endif
