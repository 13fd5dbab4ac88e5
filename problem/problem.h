// A problem: the operation that candidates compute, as problem.json describes it
// (docs/problems.md). Read strictly, and with it what follows from it: sizes and work of each case,
// hidden cases, the C text through which sources are called. Client, daemon and executor use it. It
// knows nothing of candidates, devices or jobs.
#ifndef PROBLEM_PROBLEM_H
#define PROBLEM_PROBLEM_H

#include "common/digest.h"
#include "common/err.h"
#include "common/strbuf.h"
#include "problem/dtype.h"
#include "problem/expr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBLEM_PARAM_MAX 32
#define PROBLEM_TENSOR_MAX 16
#define PROBLEM_RANK_MAX 6
#define PROBLEM_ALSO_MAX 8 // further distributions of a tensor
#define PROBLEM_CASE_MAX 32
#define PROBLEM_JSON_MAX ((size_t)1 << 20)
#define PROBLEM_SOURCE_MAX ((size_t)1 << 20)
#define PROBLEM_TENSOR_BYTES_MAX ((size_t)1 << 30)
#define PROBLEM_HIDDEN_CASES 4 // at most

enum param_type { PARAM_INT, PARAM_F64 };
enum direction { DIRECTION_IN, DIRECTION_OUT, DIRECTION_INOUT };
enum distribution {
    VALUES_NORMAL,
    VALUES_UNIFORM,
    VALUES_INTEGERS,
    VALUES_ZIPF,
    VALUES_WIDE,
    VALUES_SORTED,
    VALUES_ONE_HOT
};
// Whether caches hold the inputs when a timed launch begins.
enum cache_regime { CACHE_WARM, CACHE_COLD };

struct param {
    char *name;
    enum param_type type;
};

// How the values of an input tensor are drawn.
struct values {
    enum distribution distribution;
    double a, b; // its parameters, in the order of docs/problems.md; 0 where it has none
};

struct tensor {
    char *name;
    enum direction direction;
    enum dtype dtype;
    size_t rank;
    struct expr *shape[PROBLEM_RANK_MAX]; // extents, over the int parameters
    struct values values;                 // of timed launches and most others, for in and inout
    // Further distributions, on which a candidate is verified and not timed.
    struct values also[PROBLEM_ALSO_MAX];
    size_t also_count;
    double tolerance; // allowed error in units of u S, for out and inout
};

// One case: a value for each parameter. i and f are both indexed like problem.param.
struct shape_case {
    int64_t i[PROBLEM_PARAM_MAX]; // values of int parameters
    double f[PROBLEM_PARAM_MAX];  // values of f64 parameters
    double weight;                // of a benchmark case; all weights sum to 1
};

// The range of a parameter in hidden cases: the multiples of `multiple` from min to max.
struct hidden_range {
    int64_t min, max, multiple;
};

struct problem {
    char *name, *title, *license, *language, *entry;
    struct param param[PROBLEM_PARAM_MAX];
    size_t param_count;
    struct tensor tensor[PROBLEM_TENSOR_MAX];
    size_t tensor_count;
    struct shape_case check[PROBLEM_CASE_MAX]; // cases that are verified
    size_t check_count;
    struct shape_case bench[PROBLEM_CASE_MAX]; // cases that are verified and timed
    size_t bench_count;
    bool has_hidden;                               // the problem gives ranges for hidden cases
    struct hidden_range hidden[PROBLEM_PARAM_MAX]; // of int parameters
    enum cache_regime cache;
    struct expr *flops, *bytes; // work of a case, over the int parameters
    enum work_unit unit;        // of flops; UNIT_F32 when not given
    bool cuda;                  // language is "cuda": sources are sealed and there is no entry
    struct digest digest;       // of the JSON text
};

// Parses and validates the text of problem.json. Evaluates all shapes of all listed cases. `path`
// names the text in errors. The caller frees *ret. ERR_INVALID has the file, the JSON path and what
// would be right. ERR_LIMIT when the text is longer than PROBLEM_JSON_MAX.
MUST_CHECK int problem_parse(struct problem **ret, const char *json, size_t len, const char *path,
                             struct err *err);
// NULL is allowed.
void problem_free(struct problem *problem);

// The name of a distribution in problem.json.
const char *distribution_name(enum distribution distribution);
// Appends how values are drawn, such as "uniform(low=-200, high=-190)".
void values_text(const struct values *values, struct strbuf *out);

// The extension of its sources' file names: "c" or "cu".
const char *problem_extension(const struct problem *problem);

// ---- problem_shapes.c: what follows from a problem and one case ----

// The number of elements of a tensor: at least 1, at most PROBLEM_TENSOR_BYTES_MAX bytes.
// ERR_INVALID otherwise.
MUST_CHECK int problem_elements(const struct problem *problem, size_t tensor,
                                const struct shape_case *shape, size_t *ret, struct err *err);
// Whether an output must be equal to what is expected, so that its error scale is not looked at.
bool tensor_is_exact(const struct tensor *tensor);
// The extent of the tensor's last axis, 1 for rank 0.
MUST_CHECK int problem_last_extent(const struct problem *problem, size_t tensor,
                                   const struct shape_case *shape, size_t *ret, struct err *err);
// The operations and the bytes of memory traffic that the case needs. ERR_INVALID when one is
// negative or does not evaluate.
MUST_CHECK int problem_work(const struct problem *problem, const struct shape_case *shape,
                            double *ret_flops, double *ret_bytes, struct err *err);
// Whether all tensors and the work of a case evaluate.
MUST_CHECK int problem_check_case(const struct problem *problem, const struct shape_case *shape,
                                  struct err *err);
// Appends the parameters' values, such as "M=384 N=384 K=384".
void problem_case_name(const struct problem *problem, const struct shape_case *shape,
                       struct strbuf *out);

// ---- problem_hidden.c ----

// Draws up to PROBLEM_HIDDEN_CASES cases from the hidden ranges: with tiny extents, with primes,
// with odd ones, with one more or less than a multiple of 16. A case that does not evaluate is
// drawn again, up to 16 times, and then left out. Returns the number of cases. The same seed gives
// the same cases.
size_t problem_hidden_cases(const struct problem *problem, uint64_t seed,
                            struct shape_case out[static PROBLEM_HIDDEN_CASES]);

// ---- problem_prototype.c: C text, for problems that are not cuda ----

// Appends the header: <stdint.h> and the prototype of the entry (for candidate and baseline) or of
// `reference`.
void problem_header(const struct problem *problem, bool reference, struct strbuf *out);
// Appends the glue, a translation unit that calls the source through
//     void kcast_entry(void *const *pointer, const int64_t *integer, const double *scalar);
// pointer[] is in call order. For a reference there are several pointers per tensor: 1 for in, 2
// for out, 3 for inout. integer[] and scalar[] are indexed like problem.param.
void problem_glue(const struct problem *problem, bool reference, struct strbuf *out);

#endif
