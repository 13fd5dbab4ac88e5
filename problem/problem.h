// problem.json, read strictly (docs/problems.md), and what follows from it: shapes, prototype, glue.
#ifndef PROBLEM_PROBLEM_H
#define PROBLEM_PROBLEM_H

#include "common/digest.h"
#include "common/err.h"
#include "common/strbuf.h"
#include "problem/expr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBLEM_PARAM_MAX 32
#define PROBLEM_TENSOR_MAX 16
#define PROBLEM_RANK_MAX 6
#define PROBLEM_CASE_MAX 32
#define PROBLEM_JSON_MAX ((size_t)1 << 20)
#define PROBLEM_SOURCE_MAX ((size_t)1 << 20)
#define PROBLEM_TENSOR_BYTES_MAX ((size_t)1 << 30)
#define PROBLEM_HIDDEN_CASES 4

enum param_type { PARAM_INT, PARAM_F64 };
enum direction { DIRECTION_IN, DIRECTION_OUT, DIRECTION_INOUT };
// C problems have f32 f64 i32 i64 u8; cuda problems all of them.
enum dtype {
    DTYPE_F32,
    DTYPE_F64,
    DTYPE_I32,
    DTYPE_I64,
    DTYPE_U8,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_E4M3,
    DTYPE_E5M2,
    DTYPE_I8
};
// What the flops of a cuda problem are counted against: the device's peak of this unit.
enum work_unit { UNIT_F32, UNIT_F64, UNIT_TF32, UNIT_F16, UNIT_BF16, UNIT_FP8, UNIT_I8 };
enum distribution {
    VALUES_NORMAL,
    VALUES_UNIFORM,
    VALUES_INTEGERS,
    VALUES_ZIPF,
    VALUES_WIDE,
    VALUES_SORTED,
    VALUES_ONE_HOT
};
enum cache_regime { CACHE_WARM, CACHE_COLD };

struct param {
    char *name;
    enum param_type type;
};

struct tensor {
    char *name;
    enum direction direction;
    enum dtype dtype;
    size_t rank;
    struct expr *shape[PROBLEM_RANK_MAX]; // over the int params
    enum distribution distribution;       // for in and inout
    double value[2];                      // its parameters, in the order of docs/problems.md
    double tolerance;                     // for out and inout, in units of u S
};

// One set of parameters. Ints in i[], scalars in f[], both indexed like problem.param.
struct shape_case {
    int64_t i[PROBLEM_PARAM_MAX];
    double f[PROBLEM_PARAM_MAX];
    double weight; // benchmark cases; they sum to 1
};

struct hidden_range {
    int64_t min, max, multiple;
};

struct problem {
    char *name, *title, *license, *language, *entry;
    struct param param[PROBLEM_PARAM_MAX];
    size_t param_count;
    struct tensor tensor[PROBLEM_TENSOR_MAX];
    size_t tensor_count;
    struct shape_case check[PROBLEM_CASE_MAX];
    size_t check_count;
    struct shape_case bench[PROBLEM_CASE_MAX];
    size_t bench_count;
    bool has_hidden;
    struct hidden_range hidden[PROBLEM_PARAM_MAX]; // of int params
    enum cache_regime cache;
    struct expr *flops, *bytes; // over the int params
    enum work_unit unit;        // of flops; UNIT_F32 when not given
    bool cuda;                  // language is "cuda": sealed sources, no entry
    struct digest digest;       // of the JSON text
};

// Parses and validates JSON text (also evaluates all shapes of all listed cases). `path` names the text in errors.
MUST_CHECK int problem_parse(struct problem **ret, const char *json, size_t len, const char *path,
                             struct err *err);
void problem_free(struct problem *problem);

size_t dtype_size(enum dtype dtype);
const char *dtype_name(enum dtype dtype);
const char *dtype_c_name(enum dtype dtype);      // "float", "int32_t", …
double dtype_roundoff(enum dtype dtype);         // u of the error bound; 1 for integers
const char *dtype_cuda_name(enum dtype dtype);   // "__nv_bfloat16", "long long", …
const char *work_unit_name(enum work_unit unit); // "bf16"

// Number of elements of a tensor for a case: at least 1, at most PROBLEM_TENSOR_BYTES_MAX bytes.
MUST_CHECK int problem_elements(const struct problem *problem, size_t tensor,
                                const struct shape_case *shape, size_t *ret, struct err *err);
// Extent of the tensor's last axis (1 for rank 0).
MUST_CHECK int problem_last_extent(const struct problem *problem, size_t tensor,
                                   const struct shape_case *shape, size_t *ret, struct err *err);
MUST_CHECK int problem_work(const struct problem *problem, const struct shape_case *shape,
                            double *ret_flops, double *ret_bytes, struct err *err);
// "M=384 N=384 K=384"
void problem_case_name(const struct problem *problem, const struct shape_case *shape,
                       struct strbuf *out);

// Draws up to PROBLEM_HIDDEN_CASES shapes from the hidden ranges: tiny, prime, odd, beside a multiple of 16.
// A shape that does not evaluate is drawn again (16 times), then left out. Returns the number.
size_t problem_hidden_cases(const struct problem *problem, uint64_t seed,
                            struct shape_case out[static PROBLEM_HIDDEN_CASES]);

// What the names of its sources end in: "c" or "cu".
const char *problem_extension(const struct problem *problem);

// C text. The header holds <stdint.h> and the prototype of the entry (candidate, baseline) or of `reference`.
// The glue is a translation unit that defines
//     void kcast_entry(void *const *pointer, const int64_t *integer, const double *scalar);
// which calls it: pointer[] in call order (for a reference: in: 1, out: 2, inout: 3 pointers per tensor),
// integer[] and scalar[] indexed like problem.param.
// A cuda problem has none of them.
void problem_header(const struct problem *problem, bool reference, struct strbuf *out);
void problem_glue(const struct problem *problem, bool reference, struct strbuf *out);

#endif
