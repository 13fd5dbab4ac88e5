// The launch manifest of a sealed CUDA candidate: the `//@` lines of its source (docs/problems.md,
// "Sealed candidates"). Everything that the host does for the candidate follows from them: which
// kernels run in which order, on which grid, with which arguments and scratch memory.
//
//   //@ launch KERNEL grid=(E[,E[,E]]) block=(E[,E[,E]]) args=(A, …) [smem=E] [cluster=(E[,E[,E]])]
//              [cooperative] [pdl] [if=(CONDITION)]
//   //@ scratch NAME bytes=E [init=zero|poison]
//   //@ specialize PARAM[, PARAM…]
//   //@ tensormap NAME tensor=TENSOR box=(E,…) [swizzle=0|32|64|128]
//   //@ tune …                                  (problem/template.h; ignored here)
//
// E is an expression (problem/expr.h) over the problem's int params and the integer macros that the
// source itself defines by lines `#define NAME 123` (the first of a name counts: a template point's stands
// in front). An expression with a name that is both a param and a macro is refused. An argument A is the
// name of a tensor, of a scratch area, of a tensormap, of an f64 param, or an expression; a name comes
// first. A reference (role REFERENCE) names for each out tensor X the arguments X (double *, expected
// value) and X_scale (double *, error scale), and for each inout tensor X (its input), X_out and X_scale;
// some launch must get each of them.
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
#define MANIFEST_CONSTANT_MAX 64 // integer macros; those beyond mean nothing
#define MANIFEST_NAME_MAX 63
#define MANIFEST_KERNEL_MAX 255 // a name expression, "softmax<128, true>"
#define MANIFEST_SCRATCH_BYTES_MAX ((uint64_t)4 << 30)

enum manifest_role { MANIFEST_CANDIDATE, MANIFEST_REFERENCE };

enum manifest_arg_kind {
    ARG_TENSOR,    // index: of problem.tensor; a reference's: the input
    ARG_EXPECTED,  // reference only, index: of problem.tensor
    ARG_SCALE,     // reference only, index: of problem.tensor
    ARG_SCRATCH,   // index: of manifest.scratch
    ARG_TENSORMAP, // index: of manifest.tensormap; 128 bytes by value
    ARG_INTEGER,   // expr
    ARG_SCALAR,    // index: of problem.param, PARAM_F64
};

struct manifest_arg {
    enum manifest_arg_kind kind;
    size_t index;
    struct expr *expr; // ARG_INTEGER only
};

struct manifest_launch {
    char *kernel;         // name expression for the compiler: "rmsnorm" or "rmsnorm<256>"
    struct expr *grid[3]; // NULL: 1
    struct expr *block[3];
    struct expr *cluster[3]; // all NULL: no clusters
    struct expr *smem;       // dynamic shared memory in bytes; NULL: 0
    struct expr *condition;  // NULL: always; else the launch is left out where it is 0
    bool cooperative, pdl;
    struct manifest_arg arg[MANIFEST_ARG_MAX];
    size_t arg_count;
    unsigned line;
};

struct manifest_scratch {
    char *name;
    struct expr *bytes;
    bool zero; // set to zero before every run; else poisoned
};

struct manifest_tensormap {
    char *name;
    size_t tensor;
    struct expr *box[PROBLEM_RANK_MAX]; // in the order of the tensor's axes; as many as its rank
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
    bool specializes;                    // any
    size_t constant_count;
    int64_t constant[MANIFEST_CONSTANT_MAX];
};

// What one launch is for one case.
struct manifest_shape {
    bool skipped;                           // its condition is 0
    uint32_t grid[3], block[3], cluster[3]; // cluster: all 0 without clusters
    uint32_t smem;
};

// Parses the manifest of source[0 .. len). ERR_INVALID names path:line:column, also when there is no
// launch line, a name means nothing or two things, or a reference specialises.
MUST_CHECK int manifest_parse(struct manifest **ret, const char *source, size_t len,
                              const char *path, const struct problem *problem,
                              enum manifest_role role, struct err *err);
void manifest_free(struct manifest *manifest); // NULL is fine

// Grid, block, cluster and shared memory of a launch for a case. ERR_INVALID when an expression does
// not evaluate or a value is outside what any CUDA device takes (grid 1 … 2^31-1, 65535, 65535; block
// at least 1 each and at most 1024 together; cluster at most 16 together and a divisor of the grid;
// smem at most 1 MiB).
MUST_CHECK int manifest_launch_shape(const struct manifest *manifest, size_t launch,
                                     const struct shape_case *shape, const struct problem *problem,
                                     struct manifest_shape *ret, struct err *err);
// Value of an ARG_INTEGER, bytes of a scratch area (at least 1), extent of a tensormap's box.
MUST_CHECK int manifest_eval(const struct manifest *manifest, const struct expr *expr,
                             const struct shape_case *shape, const struct problem *problem,
                             int64_t *ret, struct err *err);
// "#define KCAST_cols 4096\n" for each specialised param: what the compiler reads before the source.
void manifest_specialize(const struct manifest *manifest, const struct problem *problem,
                         const struct shape_case *shape, struct strbuf *out);

#endif
