// The executor's kernels compiled for the host, which the tests' fake driver launches. Each
// function does the work of a whole grid in one thread. The executor itself does not use them.
#ifndef EXECUTOR_GPU_DEVICE_KERNELS_HOST_H
#define EXECUTOR_GPU_DEVICE_KERNELS_HOST_H

struct kc_host_kernel {
    const char *name; // "kc_fill"
    // parameters[i] points to the i-th parameter, as for cuLaunchKernel.
    void (*run)(void **parameters, const unsigned grid[3], const unsigned block[3]);
};

extern const struct kc_host_kernel kc_host_kernels[];
extern const unsigned kc_host_kernel_count;

#endif
