// The manual of the fake driver, and what its parts share.
//
// libcuda.so.1: a GPU on host memory. Kernels are host functions chosen by name, everything runs
// when it is queued, and time is a counter that moves by what the work would take: tests are exact
// and need no GPU. Each stream has a counter of its own, which says when what it was given last has
// ended, and which waiting for an event moves to when the event happens. So what is on several
// streams overlaps as if each had a GPU, and a stream that waits for nothing is in the past. One
// process, one thread, one GPU in use at a time.
//
// KCAST_FAKE_GPU holds settings separated by ';', read by cuInit while no context exists:
//   count=1            GPUs; their uuids are GPU-fa4e0000-0000-4000-8000-000000000000, …001, …
//   name=NVIDIA H200   of every one
//   arch=90            what cubins must be made for
//   memory=512M        of each
//   l2=1M
//   pageable=0         1: kernels can read all memory of their process, says the driver
//   seed=1             of the noise
//   noise=0.5          per cent, one standard deviation of a kernel's time
//   block=256          other block sizes take 10 % longer per power of two; 0: all alike
//   fault=WORD         one of:
//     no-device, init  cuInit fails with 100, 999
//     context          no context can be made (46)
//     oom:N            the process's Nth allocation fails (from 1)
//     full:N           so do all that come after it
//     slow:N:P         from the Nth launch of a candidate's kernel on, they take P % longer
//     dies:N           the Nth launch and every call after it fail: uncorrectable ECC error (214)
//     sick             kc_health computes something else
//     stall            what `_stall` waits for
//     @PATH            what the file PATH says at that moment, in these words; nothing while it is
//                      not there; allocations count from the start of the process all the same
// Words that are not known make cuInit fail with 1.
//
// Kernels whose names begin with kc_ are those of executor/gpu/device/kernels_host.c. A name that
// contains one of these is a candidate's (float tensors of n elements, parameters in this order):
//   fk_axpy(x, y, n, a)   y += a x       fk_ref_axpy(x, y, y_out, y_scale, n, a)
//   fk_scale(x, y, n, a)  y = a x        fk_ref_scale(x, y, y_scale, n, a)
//   fk_copy(x, y, n)      y = x          fk_ref_copy(x, y, y_scale, n)
//   fk_sum(x, y, n)       y[0] = sum     fk_ref_sum(x, y, y_scale, n)
// and these are steps of references in Python, whose results are doubles:
//   fk_double(x, y, n)    y = x, a float
//   fk_times(x, y, n, a)  y = a x, a double
//   fk_magnitude(x, y, n) y = |x|, a double
// n is an int; a is a float, in a reference a double, whose results and scales are doubles. Takes
// 20 us and 1 ns an element, and 5 % more in a module that was loaded beside another with a kernel
// of that name, unless CUDA_MODULE_LOADING is EAGER. What follows in the name changes that:
//   _slowN       N % longer
//   _fastN       N % shorter
//   _late        twice as long after FAKE_LATER launches
//   _tinynoise   a tenth of the noise
//   _hang        never ends: no event behind it completes, calls that wait do not return
//   _stall       the same, once: while the fault is the file PATH and says "stall", which it ends
//   _wrong       the last element is wrong
//   _wrongN      the same, at the Nth launch alone
//   _zero        all results are 0
//   _clamp       what is above 100 in x counts as 100
//   _nothing     no result is written
//   _oob         also writes the element behind y
//   _input       also writes x
//   _meddle      the same, after FAKE_LATER launches
//   _slack       also writes 1 MiB behind y
//   _behind      after FAKE_LATER launches, also writes where the next area behind y begins
//   _behindN     the same, at the Nth launch alone
//   _mendN       the last element is wrong at the launch before the Nth; that one writes what it
//                should have been into the next area behind y, at the same place
//   _peek        also reads the first address of the executor's arena `judge`
//   _words       writes zeros when the executor's result words are not 0; overwrites them
//   _forge       after FAKE_LATER launches, adds 1 to every result
//   _shift       after FAKE_LATER launches, adds to one result what its tolerance does not allow
//   _breaker     from now on kernels without a suffix write wrong results
//   _touch       also changes the last bit of the first element where the next area behind y begins
//   _haunter     from now on kernels without a suffix do the same
//   _haunter2    from now on kernels without a suffix also write 1 MiB behind y
//   _killer      from now on kernels without a suffix end with error 700
//   _count       writes nothing at every second launch
//   _state       writes nothing unless the first __device__ variable is 0, and counts that up
//   _memo        gives what it computed the first time
//   _nondet      the last bits differ from launch to launch
//   _fault       error 700, illegal address, from the next call on
//   _misaligned  716
//   _assert      710
//   _toobig      cannot be launched (701)
// Any other kernel takes 20 us and does nothing. A pointer that is not to device memory is a fault.
// Parameters may come in one piece (`extra`), each at a multiple of its size.
//
// An image is a cubin or "fake:NAME NAME…".
#ifndef TESTS_SUPPORT_FAKE_GPU_FAKE_H
#define TESTS_SUPPORT_FAKE_GPU_FAKE_H

#include "executor/gpu/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_GPU_MAX 16
#define FAKE_KERNEL_MAX 1024 // PyTorch has hundreds in an image
#define FAKE_GLOBAL_MAX 1024
#define FAKE_PARAMETER_MAX 4
#define FAKE_MULTIPROCESSORS 132
#define FAKE_LATER 16    // launches of a function: more than a verification has
#define FAKE_SMEM 233472 // bytes of shared memory of a multiprocessor
#define FAKE_SMEM_OPTIN 232448
#define FAKE_BYTES_PER_NS 4000ULL // of memory: 4 TB/s
#define FAKE_COPY_NS 1000

enum {
    CU_INVALID_VALUE = 1,
    CU_NOT_INITIALIZED = 3,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201
};

struct fake_settings {
    unsigned count, arch, block, pageable;
    char name[96];
    uint64_t memory_bytes, l2_bytes, seed;
    double noise;      // 0.005: half a per cent
    char fault[16];    // "" none
    uint64_t fault_at; // N of the fault
    double fault_percent;
    char fault_file[256]; // of @PATH; "" none
};

// Reads the settings from the text, which may be NULL. Returns false when a word is not known.
bool fake_settings_read(struct fake_settings *settings, const char *text);
// Whether this fault shall happen now. If so, fault_at and fault_percent are its numbers.
bool fake_fault(struct fake_settings *settings, const char *word);
// Whether an allocation that is asked for now fails by the fault oom or full.
bool fake_out_of_memory(void);
void fake_uuid(unsigned ordinal, unsigned char ret[16]);
void fake_uuid_text(unsigned ordinal, char ret[static 41]); // "GPU-…"
// The GPU that CUDA_VISIBLE_DEVICES names by its identifier, or -1 where it names none: all are
// seen. As with the real driver, what it is at the first cuInit counts for the process. The
// number of GPUs where there is none of this name.
int fake_visible(const struct fake_settings *settings);

struct cu_function {
    char *symbol;
    int registers, static_smem, dynamic_smem_max;
    bool non_portable_cluster;
    uint64_t launches;
    unsigned char *memo; // of _memo; NULL before the first launch
    size_t memo_size;
    struct cu_module *module;
};

struct fake_global {
    char *symbol;
    cu_pointer at;
    size_t size;
};

struct cu_module {
    struct cu_function function[FAKE_KERNEL_MAX];
    size_t function_count;
    struct fake_global global[FAKE_GLOBAL_MAX];
    size_t global_count;
    bool late; // another with a kernel of the same name was there before, and loading is lazy
    struct cu_module *next;
};

// The machine. There is one for the whole process.
struct fake {
    bool initialised;
    bool lazy; // CUDA_MODULE_LOADING is not EAGER
    struct fake_settings settings;
    struct cu_context *current;
    unsigned contexts;        // retained
    cu_result sticky;         // what broke the context; CU_OK: nothing
    bool hung;                // a kernel that never ends is in a stream
    struct cu_stream *stream; // on which something is being queued
    uint64_t random;          // state of the noise
    uint64_t allocated;       // number of allocations so far
    uint64_t launches;        // of candidates' kernels so far
    uint64_t used_bytes;
    bool breaks, kills; // a kernel with _breaker, _killer has run
    int haunts;         // one with _haunter (1) or _haunter2 (2) has
};
extern struct fake fake;

// module.c: kernels and variables of a cubin or of "fake:NAME NAME…".
cu_result fake_image_read(struct cu_module *module, const void *image);
void fake_module_clear(struct cu_module *module);

// launch.c
void fake_unload_all(void);

// memory.c
cu_result fake_allocate(size_t size, cu_pointer *ret);
cu_result fake_release(cu_pointer pointer);
void fake_release_all(void);
// Sets memory to 0. The pages of a large range are given back, because it may never be read.
void fake_zero(cu_pointer to, uint64_t size);
// Whether all of it is in one live allocation, or mapped and accessible.
bool fake_holds(cu_pointer pointer, uint64_t size);

// mapping.c
bool fake_maps(cu_pointer pointer, uint64_t size); // whether all of it is mapped and accessible
void fake_unmap_all(void);

// kernels.c: runs a kernel on fake.stream and advances its clock. The launch has been checked.
cu_result fake_run(struct cu_function *function, const struct cu_launch *launch, void **parameters);
// Finds the parameters of a candidate's kernel in the bytes. Returns false when they are too few.
bool fake_unpack(const struct cu_function *function, unsigned char *packed, size_t bytes,
                 void *ret[static FAKE_PARAMETER_MAX]);

struct cu_stream {
    uint64_t ns; // when all that it was given so far has ended
    bool hung;   // a kernel that never ends is in it, or it waits for one
    struct cu_stream *next;
};
// streams.c: makes it fake.stream; NULL: the default stream. Returns false when the stream never
// gets to what is queued now, and so nothing may be done.
bool fake_enter(struct cu_stream *stream);
// All streams and events.
void fake_free_streams(void);

// What has been queued, for a graph.
struct fake_work {
    cu_result (*act)(const struct fake_work *work);
    cu_stream stream;
    cu_event event; // recorded or waited for
    cu_pointer to, from;
    size_t count;
    unsigned value, size; // of what memory is filled with
    cu_function function;
    struct cu_launch launch;
    unsigned char *packed; // parameters of a kernel; owned by the graph
    size_t packed_bytes;
};
// capture.c: keeps the work, with what it owns, when a capture goes on; false: none does. *ret is
// what the call that queues it returns.
bool fake_keep(const struct fake_work *work, cu_result *ret);

// driver.c: returns why a call that needs a context fails; CU_OK when it does not.
cu_result fake_state(void);
// Waits for all streams. Never returns when a kernel in one never ends.
void fake_wait(void);

// A function of the library.
#define CALL(name, ...)                                                                            \
    __attribute__((visibility("default"))) cu_result name(__VA_ARGS__);                            \
    cu_result name(__VA_ARGS__)

#define NEED_DEVICE(device)                                                                        \
    if (!fake.initialised) {                                                                       \
        return CU_NOT_INITIALIZED;                                                                 \
    }                                                                                              \
    if ((device) < 0 || (unsigned)(device) >= fake.settings.count) {                               \
        return 101; /* CUDA_ERROR_INVALID_DEVICE */                                                \
    }
#define NEED_CONTEXT                                                                               \
    do {                                                                                           \
        cu_result state = fake_state();                                                            \
        if (state != CU_OK) {                                                                      \
            return state;                                                                          \
        }                                                                                          \
    } while (0)

#endif
