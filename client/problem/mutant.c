// Design. Mutants of cuda problems are made by mutant_cuda.c. A mutant of a C problem is the
// baseline, whose entry is renamed by the preprocessor, followed by an entry of the same signature:
//
//   #define sgemm kc_honest
//   the baseline
//   #undef sgemm
//   void sgemm(const float *kc_t0, ..., int64_t kc_p0, ...)
//   {
//       sizes; the text before; kc_honest(...); the text after
//   }
//
// The text before and after is a recipe for each mutant: C text for one output tensor, in which $t
// is the tensor, $n its number of elements, $r the extent of its first axis, $l the extent of its
// last axis, $c its C type, $s the input that it is copied from, and $m the number of elements of
// that input. All further names begin with kc_ and no header is included, so that nothing collides
// with names and macros of the baseline. Shape expressions are copied with their parameters
// renamed. Speed does not matter here, since mutants are only verified.
#include "client/problem/mutant.h"
#include "client/problem/mutant_cuda.h"
#include "client/problem/mutant_python.h"
#include "common/mem.h"
#include "problem/candidate_form.h"
#include <ctype.h>
#include <string.h>

#define EACH "for (int64_t i = 0; i < $n; i++) "
#define KEEP                                                                                       \
    "$c *const kc_keep = kc_alloc((uint64_t)$n * sizeof($c));\n__builtin_memcpy(kc_keep, $t, "     \
    "(uint64_t)$n * sizeof($c));\n"
#define KEPT(condition) "if (" condition ") $t[i] = kc_keep[i];\n__builtin_free(kc_keep);\n"
#define LAST_ROW "i >= $n - $n / $r"
#define LAST_COLUMN "i % $l == $l - 1"
#define LAST_TILE "i % $l >= $l - ($l % 16 != 0 ? $l % 16 : 16)"
#define REMAINDER "i % $l >= $l - $l % 16"
#define SAVE                                                                                       \
    "} else {\n__builtin_free(kc_saved);\nkc_saved = kc_alloc((uint64_t)$n * sizeof($c));\n"       \
    "__builtin_memcpy(kc_saved, $t, (uint64_t)$n * sizeof($c));\nkc_count = $n;\n}\n"
#define SAVED "static $c *kc_saved;\nstatic int64_t kc_count;\nif (kc_count == $n) {\n"

enum inputs { AS_THEY_ARE, RESAMPLED, ROUNDED_BF16, ROUNDED_TF32 };

struct recipe {
    enum inputs inputs; // what kc_honest is given
    bool dishonest;     // kc_honest is not called
    bool whole; // `before` and `after` share one block, so that kc_keep lives from one to the other
    const char *before;   // text for each output tensor
    const char *after;    // text for each output tensor
    const char *integers; // for output tensors of an integer type, instead of `after`
    bool floats_only;     // tensors of other types stay as they are
};

static const struct recipe recipes[MUTANT_COUNT] = {
    [MUTANT_NOTHING] = {.dishonest = true},
    [MUTANT_ZEROS] = {.dishonest = true, .after = EACH "$t[i] = 0;\n"},
    [MUTANT_CONSTANT] = {.after = "double kc_sum = 0;\n" EACH "kc_sum += (double)$t[i];\n" EACH
                                  "$t[i] = ($c)(kc_sum / (double)$n);\n"},
    [MUTANT_INPUT_COPY] = {.dishonest = true, .after = EACH "$t[i] = ($c)$s[i % $m];\n"},
    [MUTANT_PREVIOUS] =
        {.after = SAVED EACH
         "{\nconst $c kc_now = $t[i];\n$t[i] = kc_saved[i];\nkc_saved[i] = kc_now;\n}\n" SAVE},
    [MUTANT_FIRST] = {.after = SAVED
                      "__builtin_memcpy($t, kc_saved, (uint64_t)$n * sizeof($c));\n" SAVE},
    [MUTANT_OTHER_INPUTS] = {.inputs = RESAMPLED},
    [MUTANT_LAST_ROW_POISON] = {.whole = true, .before = KEEP, .after = EACH KEPT(LAST_ROW)},
    [MUTANT_LAST_ROW_ZERO] = {.after = EACH "if (" LAST_ROW ") $t[i] = 0;\n"},
    [MUTANT_LAST_COLUMN_POISON] = {.whole = true, .before = KEEP, .after = EACH KEPT(LAST_COLUMN)},
    [MUTANT_LAST_COLUMN_ZERO] = {.after = EACH "if (" LAST_COLUMN ") $t[i] = 0;\n"},
    [MUTANT_LAST_TILE_POISON] = {.whole = true, .before = KEEP, .after = EACH KEPT(LAST_TILE)},
    [MUTANT_LAST_TILE_ZERO] = {.after = EACH "if (" LAST_TILE ") $t[i] = 0;\n"},
    [MUTANT_REMAINDER] = {.whole = true, .before = KEEP, .after = EACH KEPT(REMAINDER)},
    [MUTANT_SHIFTED] = {.after = "const $c kc_last = $t[$n - 1];\nfor (int64_t i = $n - 1; i > "
                                 "0; i--) $t[i] = $t[i - 1];\n"
                                 "$t[0] = kc_last;\n"},
    [MUTANT_BF16_INPUTS] = {.inputs = ROUNDED_BF16},
    [MUTANT_TF32_INPUTS] = {.inputs = ROUNDED_TF32},
    [MUTANT_BF16_OUTPUT] = {.floats_only = true,
                            .after = EACH "$t[i] = ($c)kc_round((float)$t[i], 16);\n"},
    [MUTANT_F32_OUTPUT] = {.floats_only = true, .after = EACH "$t[i] = ($c)(float)$t[i];\n"},
    [MUTANT_ONE_PERCENT] =
        {.after = "for (int64_t i = 37 % $n; i < $n; i += 100) $t[i] = ($c)($t[i] * 1.01);\n",
         .integers = "for (int64_t i = 37 % $n; i < $n; i += 100) $t[i] = ($c)($t[i] + $t[i] / 100 "
                     "+ 1);\n"},
    [MUTANT_SWAPPED] = {.after = "const int64_t kc_half = $r / 2 * ($n / $r);\nfor (int64_t i = "
                                 "0; i < kc_half; i++) {\n"
                                 "const $c kc_other = $t[$n - kc_half + i];\n$t[$n - kc_half + "
                                 "i] = $t[i];\n$t[i] = kc_other;\n}\n"},
    [MUTANT_WRITES_INPUT] = {0},
    [MUTANT_OVERRUN] = {.after = "((unsigned char *)($t + $n))[0] ^= 1;\n"},
};

static const char *const names[] = {
#define X(id, name, what, meaning) name,
    MUTANTS(X)
#undef X
};
static const char *const whats[] = {
#define X(id, name, what, meaning) what,
    MUTANTS(X)
#undef X
};
static const char *const meanings[] = {
#define X(id, name, what, meaning) meaning,
    MUTANTS(X)
#undef X
};
static const struct {
    const char *name, *what, *pragma;
} honests[] = {
#define X(id, name, what, pragma) {name, what, pragma},
    HONEST_VARIANTS(X)
#undef X
};

const char *mutant_name(enum mutant mutant)
{
    return names[mutant];
}

const char *mutant_what(enum mutant mutant)
{
    return whats[mutant];
}

const char *mutant_meaning(enum mutant mutant)
{
    return meanings[mutant];
}

const char *honest_name(enum honest honest)
{
    return honests[honest].name;
}

const char *honest_what(enum honest honest)
{
    return honests[honest].what;
}

bool honest_applicable(enum honest honest, const struct problem *problem, struct strbuf *reason)
{
    if (!honests[honest].pragma || !problem->cuda) {
        return true;
    }
    strbuf_adds(reason, "sealed sources are all compiled with the same options");
    return false;
}

void honest_source(enum honest honest, const char *baseline, struct strbuf *out)
{
    if (honests[honest].pragma) {
        strbuf_addf(out, "%s\n#line 1 \"baseline.c\"\n", honests[honest].pragma);
    }
    strbuf_adds(out, baseline);
}

static bool is_float(const struct tensor *tensor)
{
    return tensor->dtype == DTYPE_F32 || tensor->dtype == DTYPE_F64;
}

static bool is_output(const struct tensor *tensor)
{
    return tensor->direction != DIRECTION_IN;
}

static bool is_input(const struct tensor *tensor)
{
    return tensor->direction != DIRECTION_OUT;
}

// Appends a shape expression as C text over kc_p0, kc_p1 and so on. Its functions become kc_min,
// kc_max and kc_ceildiv.
static void add_expression(const struct problem *problem, const char *text, struct strbuf *out)
{
    strbuf_addc(out, '(');
    for (const char *c = text; *c != '\0';) {
        size_t len = 0;
        while (isalnum((unsigned char)c[len]) || c[len] == '_') {
            len++;
        }
        if (len == 0) {
            strbuf_addc(out, *c++);
            continue;
        }
        if (isdigit((unsigned char)*c)) {
            strbuf_add(out, c, len);
            strbuf_adds(out, "LL");
        } else {
            size_t param = 0;
            while (param < problem->param_count &&
                   (strlen(problem->param[param].name) != len ||
                    memcmp(problem->param[param].name, c, len) != 0)) {
                param++;
            }
            if (param < problem->param_count) {
                strbuf_addf(out, "kc_p%zu", param);
            } else {
                strbuf_addf(out, "kc_%.*s", (int)len, c);
            }
        }
        c += len;
    }
    strbuf_addc(out, ')');
}

static void add_prelude(struct strbuf *out)
{
    strbuf_adds(
        out, "#define KC __attribute__((unused)) static inline\n"
             "KC int64_t kc_min(int64_t a, int64_t b) { return a < b ? a : b; }\n"
             "KC int64_t kc_max(int64_t a, int64_t b) { return a > b ? a : b; }\n"
             "KC int64_t kc_ceildiv(int64_t a, int64_t b) { return (a + b - 1) / b; }\n"
             "KC void *kc_alloc(uint64_t size)\n{\n    void *memory = __builtin_malloc(size);\n"
             "    if (memory == 0)\n        __builtin_trap();\n    return memory;\n}\n"
             "// Rounds to nearest even, dropping the last `bits` bits.\n"
             "KC float kc_round(float x, int bits)\n{\n    uint32_t word;\n"
             "    if (x - x != 0)\n        return x;\n    __builtin_memcpy(&word, &x, 4);\n"
             "    word += (1U << (bits - 1)) - 1 + (word >> bits & 1);\n    word &= ~0U << bits;\n"
             "    __builtin_memcpy(&x, &word, 4);\n    return x;\n}\n\n");
}

static void add_signature(const struct problem *problem, struct strbuf *out)
{
    strbuf_addf(out, "void %s(", problem->entry);
    const char *comma = "";
    for (size_t i = 0; i < problem->tensor_count; i++, comma = ", ") {
        strbuf_addf(out, "%s%s%s *kc_t%zu", comma, is_output(&problem->tensor[i]) ? "" : "const ",
                    dtype_c_name(problem->tensor[i].dtype), i);
    }
    for (size_t i = 0; i < problem->param_count; i++, comma = ", ") {
        strbuf_addf(out, "%s%s kc_p%zu", comma,
                    problem->param[i].type == PARAM_INT ? "int64_t" : "double", i);
    }
    strbuf_adds(out, ")\n{\n");
}

// Appends the definitions of kc_n, kc_r and kc_l ($n, $r and $l) of every tensor.
static void add_sizes(const struct problem *problem, struct strbuf *out)
{
    for (size_t i = 0; i < problem->param_count; i++) {
        strbuf_addf(out, "(void)kc_p%zu;\n", i);
    }
    for (size_t i = 0; i < problem->tensor_count; i++) {
        const struct tensor *tensor = &problem->tensor[i];
        strbuf_addf(out, "const int64_t kc_n%zu = 1", i);
        for (size_t axis = 0; axis < tensor->rank; axis++) {
            strbuf_adds(out, " * ");
            add_expression(problem, expr_text(tensor->shape[axis]), out);
        }
        strbuf_addf(out, ", kc_r%zu = ", i);
        add_expression(problem, tensor->rank > 0 ? expr_text(tensor->shape[0]) : "1", out);
        strbuf_addf(out, ", kc_l%zu = ", i);
        add_expression(problem, tensor->rank > 0 ? expr_text(tensor->shape[tensor->rank - 1]) : "1",
                       out);
        strbuf_addf(out, ";\n(void)kc_n%zu, (void)kc_r%zu, (void)kc_l%zu, (void)kc_t%zu;\n", i, i,
                    i, i);
    }
}

size_t mutant_copy_source(const struct problem *problem, size_t output)
{
    const struct tensor *to = &problem->tensor[output];
    size_t best = problem->tensor_count;
    int best_score = -1;
    for (size_t i = 0; i < problem->tensor_count; i++) {
        const struct tensor *from = &problem->tensor[i];
        if (from->direction != DIRECTION_IN) {
            continue;
        }
        bool same_shape = from->rank == to->rank;
        for (size_t axis = 0; axis < to->rank && same_shape; axis++) {
            same_shape = strcmp(expr_text(from->shape[axis]), expr_text(to->shape[axis])) == 0;
        }
        int score = (from->dtype == to->dtype ? 2 : 0) + (same_shape ? 1 : 0);
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

// Appends a recipe's text for output tensor `index`, with the $ words replaced.
static void add_recipe(const struct problem *problem, size_t index, const char *text,
                       struct strbuf *out)
{
    size_t source = mutant_copy_source(problem, index);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c != '$') {
            strbuf_addc(out, *c);
            continue;
        }
        c++;
        if (*c == 'c') {
            strbuf_adds(out, dtype_c_name(problem->tensor[index].dtype));
        } else if (*c == 's') {
            strbuf_addf(out, "kc_t%zu", source);
        } else if (*c == 'm') {
            strbuf_addf(out, "kc_n%zu", source);
        } else {
            strbuf_addf(out, "kc_%c%zu", *c, index);
        }
    }
}

// Spoils a copy (kc_u) of each tensor that is only an input and, in place, each `inout` tensor.
static void add_inputs(const struct problem *problem, enum inputs inputs, struct strbuf *out)
{
    for (size_t i = 0; i < problem->tensor_count; i++) {
        const struct tensor *tensor = &problem->tensor[i];
        const char *type = dtype_c_name(tensor->dtype);
        if (!is_input(tensor)) {
            continue;
        }
        strbuf_addf(out,
                    "%s *const kc_u%zu = kc_alloc((uint64_t)kc_n%zu * sizeof(%s));\n"
                    "for (int64_t i = 0; i < kc_n%zu; i++)\nkc_u%zu[i] = ",
                    type, i, i, type, i, i);
        if (inputs == RESAMPLED) {
            strbuf_addf(out,
                        tensor->values.distribution == VALUES_SORTED
                            ? "kc_t%zu[i / 2];\n"
                            : "kc_t%zu[kc_n%zu - 1 - i / 2];\n",
                        i, i);
        } else if (is_float(tensor)) {
            strbuf_addf(out, "(%s)kc_round((float)kc_t%zu[i], %d);\n", type, i,
                        inputs == ROUNDED_BF16 ? 16 : 13);
        } else {
            strbuf_addf(out, "kc_t%zu[i];\n", i);
        }
        if (tensor->direction == DIRECTION_INOUT) {
            strbuf_addf(out,
                        "__builtin_memcpy(kc_t%zu, kc_u%zu, (uint64_t)kc_n%zu * sizeof(%s));\n", i,
                        i, i, type);
        }
    }
}

static void add_honest_call(const struct problem *problem, bool spoilt, struct strbuf *out)
{
    strbuf_adds(out, "kc_honest(");
    const char *comma = "";
    for (size_t i = 0; i < problem->tensor_count; i++, comma = ", ") {
        strbuf_addf(out, "%skc_%c%zu", comma,
                    spoilt && problem->tensor[i].direction == DIRECTION_IN ? 'u' : 't', i);
    }
    for (size_t i = 0; i < problem->param_count; i++, comma = ", ") {
        strbuf_addf(out, "%skc_p%zu", comma, i);
    }
    strbuf_adds(out, ");\n");
    for (size_t i = 0; i < problem->tensor_count && spoilt; i++) {
        if (is_input(&problem->tensor[i])) {
            strbuf_addf(out, "__builtin_free(kc_u%zu);\n", i);
        }
    }
}

// The text of each output is a block of its own. The blocks of a `whole` recipe nest, so that each
// kc_keep hides the one before it. Therefore the texts `after` come in reverse order of outputs.
static void add_body(enum mutant mutant, const struct problem *problem, struct strbuf *out)
{
    const struct recipe *recipe = &recipes[mutant];
    for (size_t i = 0; i < problem->tensor_count && recipe->before; i++) {
        if (is_output(&problem->tensor[i])) {
            strbuf_adds(out, "{\n");
            add_recipe(problem, i, recipe->before, out);
        }
    }
    if (recipe->inputs != AS_THEY_ARE) {
        add_inputs(problem, recipe->inputs, out);
    }
    if (!recipe->dishonest) {
        add_honest_call(problem, recipe->inputs != AS_THEY_ARE, out);
    }
    for (size_t i = problem->tensor_count; i-- > 0;) {
        const struct tensor *tensor = &problem->tensor[i];
        const char *text = !is_float(tensor) && recipe->integers ? recipe->integers : recipe->after;
        if (!is_output(tensor) || !text) {
            continue;
        }
        strbuf_adds(out, recipe->whole ? "" : "{\n");
        if (is_float(tensor) || !recipe->floats_only) {
            add_recipe(problem, i, text, out);
        }
        strbuf_adds(out, "}\n");
    }
    for (size_t i = 0; i < problem->tensor_count && mutant == MUTANT_WRITES_INPUT; i++) {
        if (problem->tensor[i].direction == DIRECTION_IN) {
            strbuf_addf(out, "((unsigned char *)(uintptr_t)kc_t%zu)[0] ^= 1;\n", i);
            break;
        }
    }
}

void mutant_source(enum mutant mutant, const struct problem *problem, const char *baseline,
                   struct strbuf *out)
{
    if (problem->cuda && candidate_form(baseline, strlen(baseline)) == FORM_PYTHON) {
        mutant_python_source(mutant, problem, baseline, out);
        return;
    }
    if (problem->cuda) {
        mutant_cuda_source(mutant, problem, baseline, out);
        return;
    }
    strbuf_addf(out, "// Impostor \"%s\": %s.\n#define %s kc_honest\n#line 1 \"baseline.c\"\n",
                names[mutant], whats[mutant], problem->entry);
    strbuf_adds(out, baseline);
    strbuf_addf(out, "\n#undef %s\n#line 1 \"mutant.c\"\n", problem->entry);
    add_prelude(out);
    add_signature(problem, out);
    add_sizes(problem, out);
    add_body(mutant, problem, out);
    strbuf_adds(out, "}\n");
}
