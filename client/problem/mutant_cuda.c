// Design. A mutant of a cuda problem is a sealed source. Device code cannot call the baseline, so
// the mutant is the baseline's source with its launch lines, between launches of further kernels:
//
//   includes, helpers, kernels with names kc_...
//   //@ scratch lines, and launch lines of the steps before the baseline
//   the baseline
//   //@ launch lines of the steps after the baseline
//
// A mutant that does not compute the operation leaves the baseline out. Every step is a kernel with
// one thread for each element of one tensor. In the text of a step, $c is the element type, t the
// tensor, kept its scratch copy, n its number of elements, and rows and last its first and last
// extent.
//
// An input that the baseline is to read spoilt is changed in place and restored afterwards. This
// works through tensor maps too, and the input is the same before and after the mutant. All names
// begin with kc_, and the further kernels come first, so that macros of the baseline cannot change
// them. No integer macro is defined here, because the launch manifest would read it.
#include "client/problem/mutant_cuda.h"
#include <stdio.h>
#include <string.h>

// Which element types a mutant is for.
enum types {
    ALL_TYPES,
    WIDER_THAN_BF16,
    DOUBLES,
    PERCENT_SHOWS, // those for which mutant_percent_shows
};
enum step_tensor { OUTPUTS, INPUTS, PURE_INPUTS, FIRST_INPUT };

struct step {
    const char *body;      // what thread i does; NULL ends a list
    enum step_tensor over; // one launch for each of these tensors
    bool whole; // One block of 256 threads does everything, with the names `shared` and `thread`.
};

#define STEP_MAX 3

struct recipe {
    bool dishonest;  // the baseline is left out
    enum types only; // the tensors that the steps are for
    struct step before[STEP_MAX], after[STEP_MAX];
};

#define KEEP "kept[i] = t[i];"
#define RESTORE "t[i] = kept[i];"
#define ZERO "t[i] = kc_put<$c>(0.0);"
#define LAST_ROW "i >= n - n / rows"
#define LAST_COLUMN "i % last == last - 1"
#define LAST_TILE "i % last >= last - (last % 16 != 0 ? last % 16 : 16)"
#define REMAINDER "i % last >= last - last % 16"
#define SKIPPED(where)                                                                             \
    {                                                                                              \
        .before = {{.body = KEEP}}, .after = { {.body = "if (" where ") " RESTORE} }               \
    }
#define ZEROED(where)                                                                              \
    {                                                                                              \
        .after = { {.body = "if (" where ") " ZERO} }                                              \
    }
#define ROUNDED(bits) "t[i] = kc_put<$c>(kc_round((float)kc_get(t[i]), " bits "));"
#define SPOILT(which, text)                                                                        \
    {                                                                                              \
        .only = which, .before = {{.body = KEEP, .over = INPUTS}, {.body = text, .over = INPUTS}}, \
        .after = {{.body = RESTORE, .over = PURE_INPUTS}},                                         \
    }

static const struct recipe recipes[MUTANT_COUNT] = {
    [MUTANT_NOTHING] = {.dishonest = true, .after = {{.body = "(void)t;"}}},
    [MUTANT_ZEROS] = {.dishonest = true, .after = {{.body = ZERO}}},
    [MUTANT_CONSTANT] =
        {.after = {{.body = "double sum = 0.0;\n"
                            "for (long long i = thread; i < n; i += 256) sum += kc_get(t[i]);\n"
                            "shared[thread] = sum;\n__syncthreads();\n"
                            "for (int step = 128; step > 0; step /= 2) {\n"
                            "if (thread < step) shared[thread] += shared[thread + step];\n"
                            "__syncthreads();\n}\n"
                            "for (long long i = thread; i < n; i += 256) "
                            "t[i] = kc_put<$c>(shared[0] / (double)n);",
                    .whole = true}}},
    [MUTANT_INPUT_COPY] = {.dishonest = true,
                           .after = {{.body = "t[i] = kc_put<$c>(kc_get(source[i % source_n]));"}}},
    // Sorted inputs stay sorted, and indices stay within their range.
    [MUTANT_OTHER_INPUTS] = SPOILT(ALL_TYPES, "t[i] = kept[sorted ? i / 2 : n - 1 - i / 2];"),
    [MUTANT_LAST_ROW_POISON] = SKIPPED(LAST_ROW),
    [MUTANT_LAST_ROW_ZERO] = ZEROED(LAST_ROW),
    [MUTANT_LAST_COLUMN_POISON] = SKIPPED(LAST_COLUMN),
    [MUTANT_LAST_COLUMN_ZERO] = ZEROED(LAST_COLUMN),
    [MUTANT_LAST_TILE_POISON] = SKIPPED(LAST_TILE),
    [MUTANT_LAST_TILE_ZERO] = ZEROED(LAST_TILE),
    [MUTANT_REMAINDER] = SKIPPED(REMAINDER),
    [MUTANT_SHIFTED] = {.after = {{.body = KEEP}, {.body = "t[i] = kept[i > 0 ? i - 1 : n - 1];"}}},
    [MUTANT_BF16_INPUTS] = SPOILT(WIDER_THAN_BF16, ROUNDED("16")),
    [MUTANT_TF32_INPUTS] = SPOILT(WIDER_THAN_BF16, ROUNDED("13")),
    [MUTANT_BF16_OUTPUT] = {.only = WIDER_THAN_BF16, .after = {{.body = ROUNDED("16")}}},
    [MUTANT_F32_OUTPUT] = {.only = DOUBLES, .after = {{.body = "t[i] = ($c)(float)t[i];"}}},
    [MUTANT_ONE_PERCENT] = {.only = PERCENT_SHOWS,
                            .after = {{.body = "if (i % 100 == 37 % (n < 100 ? n : 100)) "
                                               "t[i] = kc_percent(t[i]);"}}},
    [MUTANT_SWAPPED] = {.after = {{.body = KEEP},
                                  {.body =
                                       "const long long half = rows / 2 * (n / rows);\n"
                                       "if (i < half) t[i] = kept[n - half + i];\n"
                                       "else if (i >= n - half) t[i] = kept[i - (n - half)];"}}},
    [MUTANT_WRITES_INPUT] = {.after = {{.body = "if (i == 0) ((unsigned char *)t)[0] ^= 1;",
                                        .over = FIRST_INPUT}}},
    [MUTANT_OVERRUN] = {.after = {{.body = "if (i == 0) ((unsigned char *)(t + n))[0] ^= 1;"}}},
};

// Whether the step has a launch for this tensor.
static bool concerns(const struct recipe *recipe, const struct step *step,
                     const struct problem *problem, size_t index)
{
    const struct tensor *tensor = &problem->tensor[index];
    bool is_input = tensor->direction != DIRECTION_OUT;
    if ((recipe->only == WIDER_THAN_BF16 &&
         dtype_roundoff(tensor->dtype) >= dtype_roundoff(DTYPE_BF16)) ||
        (recipe->only == DOUBLES && tensor->dtype != DTYPE_F64) ||
        (recipe->only == PERCENT_SHOWS && !mutant_percent_shows(tensor))) {
        return false;
    }
    switch (step->over) {
    case OUTPUTS:
        return tensor->direction != DIRECTION_IN;
    case INPUTS:
        return is_input;
    case PURE_INPUTS:
        return tensor->direction == DIRECTION_IN;
    case FIRST_INPUT:
        break;
    }
    for (size_t i = 0; i < index; i++) {
        if (problem->tensor[i].direction == DIRECTION_IN) {
            return false;
        }
    }
    return tensor->direction == DIRECTION_IN;
}

static bool has_dtype(const struct problem *problem, enum dtype dtype)
{
    for (size_t i = 0; i < problem->tensor_count; i++) {
        if (problem->tensor[i].dtype == dtype) {
            return true;
        }
    }
    return false;
}

static void add_prelude(const struct problem *problem, struct strbuf *out)
{
    static const struct {
        enum dtype dtype;
        const char *header;
    } narrow[] = {{DTYPE_F16, "cuda_fp16.h"},
                  {DTYPE_BF16, "cuda_bf16.h"},
                  {DTYPE_E4M3, "cuda_fp8.h"},
                  {DTYPE_E5M2, "cuda_fp8.h"}};
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
        if (has_dtype(problem, narrow[i].dtype)) {
            strbuf_addf(out, "#include <%s>\n", narrow[i].header);
        }
    }
    strbuf_adds(
        out, "template <typename T> __device__ double kc_get(T x) { return (double)x; }\n"
             "template <typename T> __device__ T kc_put(double x) { return (T)x; }\n"
             "template <typename T> __device__ T kc_percent(T x) { return (T)(x + x / 100 + 1); }\n"
             "template <> __device__ float kc_percent(float x) { return x * 1.01f; }\n"
             "template <> __device__ double kc_percent(double x) { return x * 1.01; }\n");
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
        const char *type = dtype_cuda_name(narrow[i].dtype);
        if (has_dtype(problem, narrow[i].dtype)) {
            strbuf_addf(out,
                        "template <> __device__ double kc_get(%s x) { return (double)(float)x; }\n"
                        "template <> __device__ %s kc_put<%s>(double x) { return %s((float)x); }\n"
                        "template <> __device__ %s kc_percent(%s x) { return %s((float)x * 1.01f); "
                        "}\n",
                        type, type, type, type, type, type, type);
        }
    }
    strbuf_adds(out, "// Rounds to nearest even, dropping the last `bits` bits.\n"
                     "__device__ inline double kc_round(float x, int bits)\n{\n"
                     "    if (x - x != 0.0f)\n        return x;\n"
                     "    unsigned word = __float_as_uint(x);\n"
                     "    word += (1U << (bits - 1)) - 1 + (word >> bits & 1);\n"
                     "    return __uint_as_float(word & ~0U << bits);\n}\n");
}

// Appends the number of elements as an expression such as "(rows)*(2*cols)"; "1" for rank 0.
static void add_elements(const struct tensor *tensor, struct strbuf *out)
{
    for (size_t axis = 0; axis < tensor->rank; axis++) {
        strbuf_addf(out, "%s(%s)", axis > 0 ? "*" : "", expr_text(tensor->shape[axis]));
    }
    if (tensor->rank == 0) {
        strbuf_adds(out, "1");
    }
}

static const char *extent(const struct tensor *tensor, size_t axis)
{
    return tensor->rank > 0 ? expr_text(tensor->shape[axis]) : "1";
}

static void add_kernel(const struct problem *problem, const struct step *step, const char *name,
                       size_t index, size_t source, struct strbuf *out)
{
    const char *type = dtype_cuda_name(problem->tensor[index].dtype);
    strbuf_addf(out,
                "extern \"C\" __global__ void %s(%s *t, %s *kept, const %s *source, long long n,\n"
                "    long long rows, long long last, long long source_n, int sorted)\n{\n"
                "    (void)kept, (void)source, (void)rows, (void)last, (void)source_n, "
                "(void)sorted;\n",
                name, type, type, dtype_cuda_name(problem->tensor[source].dtype));
    strbuf_adds(out,
                step->whole
                    ? "    __shared__ double shared[256];\n    const int thread = threadIdx.x;\n"
                    : "    const long long i = blockIdx.x * 256LL + threadIdx.x;\n"
                      "    if (i >= n)\n        return;\n");
    for (const char *c = step->body; *c != '\0'; c++) {
        if (*c != '$') {
            strbuf_addc(out, *c);
        } else if (*++c == 'c') {
            strbuf_adds(out, type);
        }
    }
    strbuf_adds(out, "\n}\n");
}

static void add_launch(const struct problem *problem, const struct step *step, const char *name,
                       size_t index, size_t source, struct strbuf *out)
{
    const struct tensor *tensor = &problem->tensor[index];
    strbuf_addf(out, "//@ launch %s grid=(", name);
    if (step->whole) {
        strbuf_adds(out, "1");
    } else {
        strbuf_adds(out, "ceildiv(");
        add_elements(tensor, out);
        strbuf_adds(out, ", 256)");
    }
    strbuf_addf(out, ") block=(256) args=(%s, ", tensor->name);
    if (strstr(step->body, "kept")) {
        strbuf_addf(out, "kc_kept%zu, ", index);
    } else {
        strbuf_addf(out, "%s, ", tensor->name);
    }
    strbuf_addf(out, "%s, ", problem->tensor[source].name);
    add_elements(tensor, out);
    strbuf_addf(out, ", %s, %s, ", extent(tensor, 0),
                extent(tensor, tensor->rank > 0 ? tensor->rank - 1 : 0));
    add_elements(&problem->tensor[source], out);
    strbuf_addf(out, ", %d)\n", tensor->values.distribution == VALUES_SORTED);
}

// Appends the kernels and the launch lines of a list of steps. Sets kept[i] for each tensor i whose
// copy a step uses.
static void add_steps(const struct recipe *recipe, const struct step *steps, const char *when,
                      const struct problem *problem, struct strbuf *kernels,
                      struct strbuf *launches, bool kept[static PROBLEM_TENSOR_MAX])
{
    for (size_t s = 0; s < STEP_MAX && steps[s].body; s++) {
        for (size_t i = 0; i < problem->tensor_count; i++) {
            size_t source = mutant_copy_source(problem, i);
            if (!concerns(recipe, &steps[s], problem, i)) {
                continue;
            }
            source = source < problem->tensor_count ? source : i;
            char name[48];
            snprintf(name, sizeof name, "kc_%s%zu_%zu", when, s, i);
            add_kernel(problem, &steps[s], name, i, source, kernels);
            add_launch(problem, &steps[s], name, i, source, launches);
            kept[i] |= strstr(steps[s].body, "kept") ? 1 : 0;
        }
    }
}

void mutant_cuda_source(enum mutant mutant, const struct problem *problem, const char *baseline,
                        struct strbuf *out)
{
    const struct recipe *recipe = &recipes[mutant];
    struct strbuf kernels = STRBUF_INIT, before = STRBUF_INIT, after = STRBUF_INIT;
    strbuf_addf(out, "// Impostor \"%s\": %s.\n", mutant_name(mutant), mutant_what(mutant));
    add_prelude(problem, out);
    bool kept[PROBLEM_TENSOR_MAX] = {false};
    add_steps(recipe, recipe->before, "before", problem, &kernels, &before, kept);
    add_steps(recipe, recipe->after, "after", problem, &kernels, &after, kept);
    strbuf_adds(out, strbuf_text(&kernels));
    for (size_t i = 0; i < problem->tensor_count; i++) {
        const struct tensor *tensor = &problem->tensor[i];
        if (!kept[i]) {
            continue;
        }
        strbuf_addf(out, "//@ scratch kc_kept%zu bytes=%zu*", i, dtype_size(tensor->dtype));
        add_elements(tensor, out);
        strbuf_adds(out, "\n");
    }
    strbuf_adds(out, strbuf_text(&before));
    if (!recipe->dishonest) {
        strbuf_addf(out, "#line 1 \"baseline.cu\"\n%s\n", baseline);
    }
    strbuf_adds(out, strbuf_text(&after));
    strbuf_release(&kernels);
    strbuf_release(&before);
    strbuf_release(&after);
}
