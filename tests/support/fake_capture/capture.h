// The manual of the driver that a recorded process gets in tests, and what its parts share.
//
// libcuda.so.1: as much of the CUDA driver as executor/recorder and tests/support/fake_torch ask
// for. Device memory is host memory at the addresses that were asked for, and everything runs when
// it is queued, or when the graph is launched that it was captured in. Streams that wait for an
// event of a captured one are captured with it, and have to be waited for. It is loaded into an
// interpreter, so it has nothing of this tree and no sanitizer in it. What replays is
// tests/support/fake_gpu.
//
// An image is a cubin, or a fat binary, with "fake:NAME NAME…" somewhere in it. A kernel's name
// begins with one of these, float tensors of n elements:
//   fk_scale(x, y, n, a)   y = a x, with an int n and a float a
//   fk_copy(x, y, n)       y = x
//   fk_fault()             an illegal address: this call and every one after it fail with 700
// Any other kernel has no parameters and does nothing.
#ifndef TESTS_SUPPORT_FAKE_CAPTURE_CAPTURE_H
#define TESTS_SUPPORT_FAKE_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALL(name, ...)                                                                            \
    __attribute__((visibility("default"))) int name(__VA_ARGS__);                                  \
    int name(__VA_ARGS__)

enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_IMAGE = 200,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_UNJOINED = 904,
    CAPTURE_ISOLATION = 905
};

#define PARAMETERS_MAX 4
#define AFTER_MAX 256 // nodes that a node comes after

struct function {
    struct module *module;
    char name[64];
};

enum node_kind { NODE_KERNEL, NODE_COPY, NODE_FILL, NODE_HOST, NODE_GRAPH, NODE_EMPTY };

struct node { // what is queued, whether it is captured or not
    enum node_kind kind;
    struct function *function; // of a kernel; the rest up to `place` too
    unsigned grid[3], block[3], smem;
    unsigned char value[PARAMETERS_MAX][8];
    void *place[PARAMETERS_MAX]; // of the values
    uint64_t to, from;           // of a fill or copy
    bool from_host;
    size_t bytes;
    unsigned fill, width;
    void (*call)(void *); // of a host function
    void *context;
    struct graph *child; // of a graph that was launched
    // In a graph:
    struct node *after[AFTER_MAX];
    size_t after_count;
    bool early; // it may begin before the first of these has ended
    bool mark;
};

// What broke the GPU; 0 when nothing has.
extern int broken;

// How many parameters the kernel has. Sets their sizes.
size_t kernel_parameters(const char *name, size_t size[static PARAMETERS_MAX]);
// Runs it now. Returns what the driver says.
int node_run(const struct node *node);
// Runs all of a graph in the order in which it was captured.
int graph_run(const struct graph *graph);
// Whether all of the range is memory that may be used.
bool memory_holds(uint64_t at, size_t bytes);

// Whether any stream is captured.
bool is_capturing(void);

#endif
