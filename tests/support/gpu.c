#include "tests/support/gpu.h"
#include "common/mem.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

char *gpu_fake_folder(void)
{
    const char *build = getenv("KCAST_BUILD");

    return xasprintf("%s/tests/fake", build ? build : "build/debug");
}

// A library that is loaded already is found by its soname, wherever it came from.
static void load(const char *folder, const char *soname)
{
    char *path = xasprintf("%s/%s", folder, soname);

    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        fprintf(stderr, "cannot load the fake %s: %s\n", path, dlerror());
        abort();
    }
    free(path);
}

void gpu_fake_use(const char *settings)
{
    char *folder = gpu_fake_folder();

    load(folder, "libcuda.so.1");
    load(folder, "libnvidia-ml.so.1");
    setenv("LD_LIBRARY_PATH", folder, 1);
    gpu_fake_set(settings);
    free(folder);
}

void gpu_fake_set(const char *settings)
{
    setenv("KCAST_FAKE_GPU", settings, 1);
}
