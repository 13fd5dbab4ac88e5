#include "executor/gpu/compile/toolkit.h"
#include "common/file.h"
#include "common/mem.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Returns the real path of NAME.so.N in a toolkit, with the greatest N in the first folder that has
// one. The caller frees it. NULL when there is none.
static char *find_library(const char *root, const char *name)
{
    static const char *const folder[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                         "targets/sbsa-linux/lib"};
    char *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(folder) && !found; i++) {
        for (int version = 14; version >= 12 && !found; version--) {
            char *path = xasprintf("%s/%s/%s.so.%d", root, folder[i], name, version);

            if (file_exists(path)) {
                found = realpath(path, NULL);
            }
            free(path);
        }
    }
    return found;
}

// Fills *toolkit when the folder is a toolkit with headers and NVRTC.
static bool try_root(struct toolkit *toolkit, const char *root)
{
    char *header, *real = root && root[0] != '\0' ? realpath(root, NULL) : NULL;

    if (!real) {
        return false;
    }
    header = xasprintf("%s/include/cuda_fp16.h", real);
    toolkit->nvrtc = file_exists(header) ? find_library(real, "libnvrtc") : NULL;
    free(header);
    if (!toolkit->nvrtc) {
        free(real);
        return false;
    }
    toolkit->root = real;
    toolkit->include = xasprintf("%s/include", real);
    toolkit->nvjitlink = find_library(real, "libnvJitLink");
    toolkit->nvdisasm = xasprintf("%s/bin/nvdisasm", real);
    if (access(toolkit->nvdisasm, X_OK) != 0) {
        free(toolkit->nvdisasm);
        toolkit->nvdisasm = NULL;
    }
    return true;
}

static int is_toolkit(const struct dirent *entry)
{
    return strncmp(entry->d_name, "cuda-", 5) == 0;
}

static bool try_versions(struct toolkit *toolkit)
{
    struct dirent **entry = NULL;
    int count = scandir("/usr/local", &entry, is_toolkit, versionsort);
    bool found = false;

    for (int i = count - 1; i >= 0; i--) {
        char *path = xasprintf("/usr/local/%s", entry[i]->d_name);

        found = found || try_root(toolkit, path);
        free(path);
        free(entry[i]);
    }
    free(entry);
    return found;
}

// Looks beside and above the folder of this program.
static bool try_own(struct toolkit *toolkit)
{
    static const char *const place[] = {"toolkit", "../toolkit", "../../toolkit"};
    struct err ignored = ERR_INIT;
    char *dir = NULL;

    if (file_own_dir(&dir, &ignored) != 0) {
        return false;
    }
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(place) && !found; i++) {
        char *path = xasprintf("%s/%s", dir, place[i]);

        found = try_root(toolkit, path);
        free(path);
    }
    free(dir);
    return found;
}

int toolkit_find(struct toolkit *ret, struct err *err)
{
    const char *own = getenv("KCAST_CUDA_HOME");
    struct toolkit toolkit = {.root = NULL};

    if (own && own[0] != '\0') {
        if (!try_root(&toolkit, own)) {
            return err_set(err, ERR_NOT_FOUND,
                           "KCAST_CUDA_HOME=%s holds no include/cuda_fp16.h with a libnvrtc.so of"
                           " version 12 or later",
                           own);
        }
    } else if (!try_root(&toolkit, getenv("CUDA_HOME")) && !try_root(&toolkit, "/usr/local/cuda") &&
               !try_versions(&toolkit) && !try_own(&toolkit)) {
        return err_set(err, ERR_NOT_FOUND,
                       "no CUDA compiler: neither CUDA_HOME nor /usr/local/cuda has NVRTC and its"
                       " headers; install the CUDA toolkit or set KCAST_CUDA_HOME");
    }
    *ret = toolkit;
    return 0;
}

void toolkit_release(struct toolkit *toolkit)
{
    free(toolkit->root);
    free(toolkit->nvrtc);
    free(toolkit->include);
    free(toolkit->nvjitlink);
    free(toolkit->nvdisasm);
    *toolkit = (struct toolkit){.root = NULL};
}
