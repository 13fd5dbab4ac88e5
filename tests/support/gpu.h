// The fake GPU and the fake NVML for a test (tests/support/fake_gpu/fake.h, fake_nvml/state.h):
// real libraries of this machine are never used after this.
#ifndef TESTS_SUPPORT_GPU_H
#define TESTS_SUPPORT_GPU_H

// $KCAST_BUILD/tests/fake (build/debug/tests/fake by default); malloc'd.
char *gpu_fake_folder(void);

// For this process: libcuda.so.1 and libnvidia-ml.so.1 are the fakes from now on. For programs that
// it starts: LD_LIBRARY_PATH. settings: KCAST_FAKE_GPU.
void gpu_fake_use(const char *settings);

// Other settings, from the next cuInit without a context on.
void gpu_fake_set(const char *settings);

#endif
