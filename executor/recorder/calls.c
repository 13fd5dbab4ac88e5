// Functions that stand in for those of the CUDA driver. Those that load code note what they load,
// and those that launch do it on the stream that is recorded when they name none. Whoever asks the
// driver for a function by its name gets these, and what is linked with it finds them first.
#include "executor/recorder/recorder.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MODULE_LOAD(name, parameters, arguments)                                                   \
    static result(*real_##name) parameters;                                                        \
    static result our_##name parameters                                                            \
    {                                                                                              \
        result rc = real_##name arguments;                                                         \
                                                                                                   \
        if (rc == 0) {                                                                             \
            note_image(given, *ret, 0);                                                            \
        }                                                                                          \
        return rc;                                                                                 \
    }

MODULE_LOAD(cuModuleLoadData, (void **ret, const void *given), (ret, given))
MODULE_LOAD(cuModuleLoadDataEx,
            (void **ret, const void *given, unsigned count, void *option, void *value),
            (ret, given, count, option, value))
MODULE_LOAD(cuModuleLoadFatBinary, (void **ret, const void *given), (ret, given))

static result (*real_cuLibraryLoadData)(void **ret, const void *given, void *a, void *b, unsigned c,
                                        void *d, void *e, unsigned f);
static result our_cuLibraryLoadData(void **ret, const void *given, void *a, void *b, unsigned c,
                                    void *d, void *e, unsigned f)
{
    result rc = real_cuLibraryLoadData(ret, given, a, b, c, d, e, f);

    if (rc == 0) {
        note_image(given, *ret, 1);
    }
    return rc;
}

static result (*real_cuModuleLoad)(void **ret, const char *path);
static result our_cuModuleLoad(void **ret, const char *path)
{
    result rc = real_cuModuleLoad(ret, path);

    if (rc == 0) {
        note_file(path, *ret);
    }
    return rc;
}

// Work for the default stream, which no recording sees, goes to the stream that is recorded.
#define DEFAULT_STREAMS 2 // handles that are none: 0, 1 and 2

static void *recorded_stream;

static void *stream_for(void *stream)
{
    return recorded_stream && (uintptr_t)stream <= DEFAULT_STREAMS ? recorded_stream : stream;
}

#define STREAM_CALL(name, parameters, arguments)                                                   \
    static result(*real_##name) parameters;                                                        \
    static result our_##name parameters                                                            \
    {                                                                                              \
        return real_##name arguments;                                                              \
    }

STREAM_CALL(cuLaunchKernel,
            (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
             unsigned bz, unsigned smem, void *stream, void **parameter, void **extra),
            (function, gx, gy, gz, bx, by, bz, smem, stream_for(stream), parameter, extra))
STREAM_CALL(cuLaunchCooperativeKernel,
            (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
             unsigned bz, unsigned smem, void *stream, void **parameter),
            (function, gx, gy, gz, bx, by, bz, smem, stream_for(stream), parameter))
STREAM_CALL(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t count, void *stream),
            (to, value, count, stream_for(stream)))
STREAM_CALL(cuMemsetD16Async, (uint64_t to, unsigned short value, size_t count, void *stream),
            (to, value, count, stream_for(stream)))
STREAM_CALL(cuMemsetD32Async, (uint64_t to, unsigned value, size_t count, void *stream),
            (to, value, count, stream_for(stream)))
STREAM_CALL(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t count, void *stream),
            (to, from, count, stream_for(stream)))
STREAM_CALL(cuMemcpyAsync, (uint64_t to, uint64_t from, size_t count, void *stream),
            (to, from, count, stream_for(stream)))

// What orders streams, and graphs of the candidate's.
STREAM_CALL(cuEventRecord, (void *event, void *stream), (event, stream_for(stream)))
STREAM_CALL(cuEventRecordWithFlags, (void *event, void *stream, unsigned flags),
            (event, stream_for(stream), flags))
STREAM_CALL(cuStreamWaitEvent, (void *stream, void *event, unsigned flags),
            (stream_for(stream), event, flags))
STREAM_CALL(cuGraphLaunch, (void *graph, void *stream), (graph, stream_for(stream)))

struct launch_config { // CUlaunchConfig
    unsigned grid[3], block[3], smem;
    void *stream;
    void *attributes;
    unsigned attribute_count;
};

static result (*real_cuLaunchKernelEx)(const struct launch_config *config, void *function,
                                       void **parameter, void **extra);
static result our_cuLaunchKernelEx(const struct launch_config *config, void *function,
                                   void **parameter, void **extra)
{
    struct launch_config ours = *config;

    ours.stream = stream_for(config->stream);
    return real_cuLaunchKernelEx(&ours, function, parameter, extra);
}

// From now on the default stream is this one; 0: it is itself again.
EXPORT void kr_stream(void *stream);
void kr_stream(void *stream)
{
    recorded_stream = stream;
}

static const struct {
    const char *name;
    void *ours;
    void **real;
} replaced[] = {
    {"cuLaunchKernel", (void *)our_cuLaunchKernel, (void **)&real_cuLaunchKernel},
    {"cuLaunchKernelEx", (void *)our_cuLaunchKernelEx, (void **)&real_cuLaunchKernelEx},
    {"cuLaunchCooperativeKernel", (void *)our_cuLaunchCooperativeKernel,
     (void **)&real_cuLaunchCooperativeKernel},
    {"cuMemsetD8Async", (void *)our_cuMemsetD8Async, (void **)&real_cuMemsetD8Async},
    {"cuMemsetD16Async", (void *)our_cuMemsetD16Async, (void **)&real_cuMemsetD16Async},
    {"cuMemsetD32Async", (void *)our_cuMemsetD32Async, (void **)&real_cuMemsetD32Async},
    {"cuMemcpyDtoDAsync_v2", (void *)our_cuMemcpyDtoDAsync_v2, (void **)&real_cuMemcpyDtoDAsync_v2},
    {"cuMemcpyDtoDAsync", (void *)our_cuMemcpyDtoDAsync_v2, (void **)&real_cuMemcpyDtoDAsync_v2},
    {"cuMemcpyAsync", (void *)our_cuMemcpyAsync, (void **)&real_cuMemcpyAsync},
    {"cuEventRecord", (void *)our_cuEventRecord, (void **)&real_cuEventRecord},
    {"cuEventRecordWithFlags", (void *)our_cuEventRecordWithFlags,
     (void **)&real_cuEventRecordWithFlags},
    {"cuStreamWaitEvent", (void *)our_cuStreamWaitEvent, (void **)&real_cuStreamWaitEvent},
    {"cuGraphLaunch", (void *)our_cuGraphLaunch, (void **)&real_cuGraphLaunch},
    {"cuModuleLoad", (void *)our_cuModuleLoad, (void **)&real_cuModuleLoad},
    {"cuModuleLoadData", (void *)our_cuModuleLoadData, (void **)&real_cuModuleLoadData},
    {"cuModuleLoadDataEx", (void *)our_cuModuleLoadDataEx, (void **)&real_cuModuleLoadDataEx},
    {"cuModuleLoadFatBinary", (void *)our_cuModuleLoadFatBinary,
     (void **)&real_cuModuleLoadFatBinary},
    {"cuLibraryLoadData", (void *)our_cuLibraryLoadData, (void **)&real_cuLibraryLoadData},
};

static void *replace(const char *name, void *real)
{
    for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++) {
        if (strcmp(name, replaced[i].name) == 0) {
            *replaced[i].real = real;
            return replaced[i].ours;
        }
    }
    return real;
}

static result (*real_get)(const char *name, void **ret, int version, uint64_t flags, void *status);
static result our_get(const char *name, void **ret, int version, uint64_t flags, void *status)
{
    result rc = real_get(name, ret, version, flags, status);

    if (rc == 0 && ret && *ret) {
        if (strcmp(name, "cuGetProcAddress") == 0) {
            *(void **)&real_get = *ret;
            *ret = (void *)our_get;
        } else {
            *ret = replace(name, *ret);
        }
    }
    return rc;
}

static void *(*real_dlsym)(void *, const char *);

static void find_dlsym(void)
{
    static const char *const version[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};

    for (size_t i = 0; i < sizeof(version) / sizeof(version[0]) && !real_dlsym; i++) {
        *(void **)&real_dlsym = dlvsym(RTLD_NEXT, "dlsym", version[i]);
    }
}

EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
    if (!real_dlsym) {
        find_dlsym();
    }
    void *found = real_dlsym ? real_dlsym(handle, name) : NULL;
    if (found && strcmp(name, "cuGetProcAddress_v2") == 0) {
        *(void **)&real_get = found;
        return (void *)our_get;
    }
    return found && strncmp(name, "cu", 2) == 0 ? replace(name, found) : found;
}

void *driver(const char *name)
{
    static void *library;

    if (!library) {
        library = dlopen("libcuda.so.1", RTLD_NOW);
    }
    if (!real_dlsym) {
        find_dlsym();
    }
    return library && real_dlsym ? real_dlsym(library, name) : NULL;
}

// What is linked with the driver finds these first. Triton's own code is.
EXPORT result cuModuleLoadData(void **ret, const void *given);
result cuModuleLoadData(void **ret, const void *given)
{
    if (!real_cuModuleLoadData) {
        *(void **)&real_cuModuleLoadData = driver("cuModuleLoadData");
    }
    return real_cuModuleLoadData ? our_cuModuleLoadData(ret, given) : 999;
}

EXPORT result cuModuleLoad(void **ret, const char *path);
result cuModuleLoad(void **ret, const char *path)
{
    if (!real_cuModuleLoad) {
        *(void **)&real_cuModuleLoad = driver("cuModuleLoad");
    }
    return real_cuModuleLoad ? our_cuModuleLoad(ret, path) : 999;
}

EXPORT result cuModuleLoadDataEx(void **ret, const void *given, unsigned count, void *option,
                                 void *value);
result cuModuleLoadDataEx(void **ret, const void *given, unsigned count, void *option, void *value)
{
    if (!real_cuModuleLoadDataEx) {
        *(void **)&real_cuModuleLoadDataEx = driver("cuModuleLoadDataEx");
    }
    return real_cuModuleLoadDataEx ? our_cuModuleLoadDataEx(ret, given, count, option, value) : 999;
}

EXPORT result cuModuleLoadFatBinary(void **ret, const void *given);
result cuModuleLoadFatBinary(void **ret, const void *given)
{
    if (!real_cuModuleLoadFatBinary) {
        *(void **)&real_cuModuleLoadFatBinary = driver("cuModuleLoadFatBinary");
    }
    return real_cuModuleLoadFatBinary ? our_cuModuleLoadFatBinary(ret, given) : 999;
}

EXPORT result cuLibraryLoadData(void **ret, const void *given, void *a, void *b, unsigned c,
                                void *d, void *e, unsigned f);
result cuLibraryLoadData(void **ret, const void *given, void *a, void *b, unsigned c, void *d,
                         void *e, unsigned f)
{
    if (!real_cuLibraryLoadData) {
        *(void **)&real_cuLibraryLoadData = driver("cuLibraryLoadData");
    }
    return real_cuLibraryLoadData ? our_cuLibraryLoadData(ret, given, a, b, c, d, e, f) : 999;
}
