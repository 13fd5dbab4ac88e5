// The launch manifest of a sealed CUDA source: the `//@` lines in it (docs/problems.md, "Sealed
// candidates"). It says everything that the host does for the source: which kernels run in which
// order, on which grid, with which arguments and scratch memory. The executor compiles and launches
// by it, and the client checks it. Nothing here knows CUDA's interface.
//
//   //@ launch KERNEL grid=(E[,E[,E]]) block=(E[,E[,E]]) args=(A, ...) [smem=E]
//              [cluster=(E[,E[,E]])] [cooperative] [pdl] [if=(CONDITION)]
//   //@ scratch NAME bytes=E [init=zero|poison]
//   //@ specialize PARAM[, PARAM...]
//   //@ tensormap NAME tensor=TENSOR box=(E, ...) [swizzle=0|32|64|128]
//   //@ tune ...                                (problem/template.h; ignored here)
//
// E is an expression (problem/expr.h) over the problem's int params and the integer macros that the
// source defines by lines `#define NAME 123`. The first definition of a name counts: those of a
// template's point stand in front. A name that is both a param and a macro is refused.
//
// An argument A is the name of a tensor, a scratch area, a tensor map or an f64 param, or else an
// expression. For an out tensor X a reference has the arguments X (double *, the expected values)
// and X_scale (double *, the error scales). For an inout tensor X it has X (the input), X_out (the
// expected values) and X_scale. Some launch must get each of them.
#ifndef PROBLEM_MANIFEST_H
#define PROBLEM_MANIFEST_H

#include "common/err.h"
#include "problem/expr.h"
#include "problem/problem.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_LAUNCH_MAX 32
#define MANIFEST_ARG_MAX 64
#define MANIFEST_SCRATCH_MAX 16
#define MANIFEST_TENSORMAP_MAX 16
#define MANIFEST_CONSTANT_MAX 64 // integer macros; later ones are not known
#define MANIFEST_NAME_MAX 63
#define MANIFEST_KERNEL_MAX 255 // bytes of a name expression, such as "softmax<128, true>"
#define MANIFEST_SCRATCH_BYTES_MAX ((uint64_t)4 << 30)

enum manifest_role { MANIFEST_CANDIDATE, MANIFEST_REFERENCE };

enum manifest_arg_kind {
    ARG_TENSOR,    // index of problem.tensor; for a reference: its input
    ARG_EXPECTED,  // expected values of a reference; index of problem.tensor
    ARG_SCALE,     // error scales of a reference; index of problem.tensor
    ARG_SCRATCH,   // index of manifest.scratch
    ARG_TENSORMAP, // index of manifest.tensormap; 128 bytes by value
    ARG_INTEGER,   // value of expr
    ARG_SCALAR,    // index of problem.param, whose type is PARAM_F64
};

struct manifest_arg {
    enum manifest_arg_kind kind;
    size_t index;
    struct expr *expr; // ARG_INTEGER only
};

struct manifest_launch {
    char *kernel;         // name expression for the compiler: "rmsnorm" or "rmsnorm<256>"
    struct expr *grid[3]; // NULL: 1, as for block
    struct expr *block[3];
    struct expr *cluster[3]; // all NULL: no clusters
    struct expr *smem;       // bytes of dynamic shared memory; NULL: 0
    struct expr *condition;  // the launch is skipped where this is 0; NULL: never
    bool cooperative, pdl;
    struct manifest_arg arg[MANIFEST_ARG_MAX];
    size_t arg_count;
    unsigned line; // of the source, from 1
};

struct manifest_scratch {
    char *name;
    struct expr *bytes;
    bool zero; // set to zero before every run; false: filled with a poison pattern
};

struct manifest_tensormap {
    char *name;
    size_t tensor;                      // index of problem.tensor
    struct expr *box[PROBLEM_RANK_MAX]; // one extent for each axis of the tensor, in its order
    unsigned swizzle;                   // 0, 32, 64 or 128 bytes
};

struct manifest {
    struct manifest_launch *launch; // in source order
    size_t launch_count;            // at least 1
    struct manifest_scratch scratch[MANIFEST_SCRATCH_MAX];
    size_t scratch_count;
    struct manifest_tensormap tensormap[MANIFEST_TENSORMAP_MAX];
    size_t tensormap_count;
    bool specialized[PROBLEM_PARAM_MAX]; // int params that become macros KCAST_<name>
    bool specializes;                    // some param is specialised
    size_t constant_count;
    int64_t constant[MANIFEST_CONSTANT_MAX]; // values of the macros
};

// The dimensions of one launch for one case.
struct manifest_shape {
    bool skipped;                           // its condition is 0
    uint32_t grid[3], block[3], cluster[3]; // cluster is all 0 without clusters
    uint32_t smem;                          // bytes
};

// Parses the manifest of source[0 .. len). The caller frees *ret. ERR_INVALID names
// path:line:column, also when there is no launch line, when a name has no meaning or two, or when a
// reference specialises.
MUST_CHECK int manifest_parse(struct manifest **ret, const char *source, size_t len,
                              const char *path, const struct problem *problem,
                              enum manifest_role role, struct err *err);
// NULL is allowed.
void manifest_free(struct manifest *manifest);

// The dimensions of a launch for a case. ERR_INVALID when an expression does not evaluate, or when
// a value is outside what any CUDA device accepts: grid at most 2^31-1, 65535 and 65535; block at
// most 1024, 1024 and 64, and 1024 threads in all; cluster at most 16 blocks in all and a divisor
// of the grid; each of these at least 1; smem at most 1 MiB.
MUST_CHECK int manifest_launch_shape(const struct manifest *manifest, size_t launch,
                                     const struct shape_case *shape, const struct problem *problem,
                                     struct manifest_shape *ret, struct err *err);
// Evaluates an expression of the manifest for a case: an integer argument, the bytes of a scratch
// area, an extent of a tensor map's box. The caller checks the range.
MUST_CHECK int manifest_eval(const struct manifest *manifest, const struct expr *expr,
                             const struct shape_case *shape, const struct problem *problem,
                             int64_t *ret, struct err *err);
// Appends a line such as "#define KCAST_cols 4096" for each specialised param. The compiler reads
// these lines before the source.
void manifest_specialize(const struct manifest *manifest, const struct problem *problem,
                         const struct shape_case *shape, struct strbuf *out);

#endif
