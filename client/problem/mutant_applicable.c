// Which mutants are applicable to a problem: those that can differ from an honest implementation in
// one of its cases. The cases are the listed ones and some hidden ones, which are drawn here with
// fixed seeds, because only the sizes that can occur matter.
#include "client/problem/mutant.h"
#include "client/problem/mutant_cuda.h"
#include <math.h>
#include <string.h>

#define HIDDEN_SEEDS 4
#define BF16_EXACT 256.0  // integers up to this are exact in bfloat16, which has 8 bits
#define TF32_EXACT 2048.0 // integers up to this are exact in fp16 and tf32, which have 11 bits

// The sizes of a tensor over all cases.
struct sizes {
    size_t elements; // largest number of elements
    size_t rows;     // largest extent of the first axis
    bool remainder;  // the extent of the last axis is not always a multiple of 16
};

static void note_case(const struct problem *problem, size_t tensor, const struct shape_case *shape,
                      struct sizes *sizes)
{
    struct err ignored = ERR_INIT;
    size_t elements, last;
    if (problem_elements(problem, tensor, shape, &elements, &ignored) != 0 ||
        problem_last_extent(problem, tensor, shape, &last, &ignored) != 0) {
        return;
    }
    sizes->elements = elements > sizes->elements ? elements : sizes->elements;
    sizes->remainder |= last % 16 != 0;
    int64_t rows = 1;
    if (problem->tensor[tensor].rank > 0 &&
        expr_eval(&rows, problem->tensor[tensor].shape[0], shape->i, &ignored) != 0) {
        return;
    }
    sizes->rows = rows > 0 && (size_t)rows > sizes->rows ? (size_t)rows : sizes->rows;
}

static struct sizes sizes_of(const struct problem *problem, size_t tensor)
{
    struct sizes sizes = {0};
    for (size_t i = 0; i < problem->check_count; i++) {
        note_case(problem, tensor, &problem->check[i], &sizes);
    }
    for (size_t i = 0; i < problem->bench_count; i++) {
        note_case(problem, tensor, &problem->bench[i], &sizes);
    }
    for (uint64_t seed = 1; seed <= HIDDEN_SEEDS && problem->has_hidden; seed++) {
        struct shape_case hidden[PROBLEM_HIDDEN_CASES];
        size_t count = problem_hidden_cases(problem, seed, hidden);
        for (size_t i = 0; i < count; i++) {
            note_case(problem, tensor, &hidden[i], &sizes);
        }
    }
    return sizes;
}

// Whether rounding changes values that are drawn so. `exact` is the largest integer up to which the
// rounded type represents all integers.
static bool rounding_changes_values(const struct values *values, double exact)
{
    switch (values->distribution) {
    case VALUES_INTEGERS:
        return fmax(fabs(values->a), fabs(values->b)) > exact;
    case VALUES_ZIPF:
        return values->a > exact;
    case VALUES_ONE_HOT:
        return false;
    default:
        return true;
    }
}

// Whether rounding changes values of this tensor, of one of its distributions at least.
static bool rounding_changes(const struct tensor *tensor, double exact)
{
    if (dtype_roundoff(tensor->dtype) >= 1.0 / exact) {
        return false;
    }
    bool changes = rounding_changes_values(&tensor->values, exact);
    for (size_t i = 0; i < tensor->also_count; i++) {
        changes = changes || rounding_changes_values(&tensor->also[i], exact);
    }
    return changes;
}

// What an output must have for a mutant to differ.
enum need {
    NEED_NOTHING,
    NEED_ELEMENTS,  // more than one element
    NEED_ROWS,      // a first axis with more than one element
    NEED_AXES,      // more than one axis
    NEED_REMAINDER, // a last axis that is not always a multiple of 16
    NEED_FLOAT,     // more precision than bfloat16
    NEED_DOUBLE,    // double precision
    NEED_PERCENT    // a type in which a change of 1 % shows
};

bool mutant_percent_shows(const struct tensor *tensor)
{
    double roundoff = dtype_roundoff(tensor->dtype);
    // An integer, whose roundoff is 1, changes by 1 at least.
    return roundoff >= 1.0 || roundoff < 0.005;
}

static bool output_offers(const struct problem *problem, size_t index, enum need need)
{
    const struct tensor *tensor = &problem->tensor[index];
    struct sizes sizes = sizes_of(problem, index);
    switch (need) {
    case NEED_ELEMENTS:
        return sizes.elements > 1;
    case NEED_ROWS:
        return sizes.rows > 1;
    case NEED_AXES:
        return tensor->rank > 1;
    case NEED_REMAINDER:
        return sizes.remainder;
    case NEED_FLOAT:
        return dtype_roundoff(tensor->dtype) < dtype_roundoff(DTYPE_BF16);
    case NEED_DOUBLE:
        return tensor->dtype == DTYPE_F64;
    case NEED_PERCENT:
        return mutant_percent_shows(tensor);
    case NEED_NOTHING:
        break;
    }
    return true;
}

static bool some_output(const struct problem *problem, enum need need)
{
    for (size_t i = 0; i < problem->tensor_count; i++) {
        if (problem->tensor[i].direction != DIRECTION_IN && output_offers(problem, i, need)) {
            return true;
        }
    }
    return false;
}

static bool some_pure_input(const struct problem *problem)
{
    for (size_t i = 0; i < problem->tensor_count; i++) {
        if (problem->tensor[i].direction == DIRECTION_IN) {
            return true;
        }
    }
    return false;
}

static bool some_input_changes(const struct problem *problem, enum mutant mutant)
{
    for (size_t i = 0; i < problem->tensor_count; i++) {
        const struct tensor *tensor = &problem->tensor[i];
        if (tensor->direction == DIRECTION_OUT) {
            continue;
        }
        if (mutant == MUTANT_OTHER_INPUTS
                ? sizes_of(problem, i).elements > 1
                : rounding_changes(tensor,
                                   mutant == MUTANT_BF16_INPUTS ? BF16_EXACT : TF32_EXACT)) {
            return true;
        }
    }
    return false;
}

static const struct {
    enum need need;
    const char *otherwise; // the reason when no output has it
} needs[MUTANT_COUNT] = {
    [MUTANT_CONSTANT] = {NEED_ELEMENTS, "every output is a single element, which is its own mean"},
    [MUTANT_SHIFTED] = {NEED_ELEMENTS, "every output is a single element"},
    [MUTANT_SWAPPED] = {NEED_ROWS, "the first axis has one element"},
    [MUTANT_LAST_COLUMN_POISON] = {NEED_AXES,
                                   "no output has two axes: the last column is the last row"},
    [MUTANT_LAST_COLUMN_ZERO] = {NEED_AXES,
                                 "no output has two axes: the last column is the last row"},
    [MUTANT_REMAINDER] = {NEED_REMAINDER, "the last axis is always a multiple of 16"},
    [MUTANT_BF16_OUTPUT] = {NEED_FLOAT, "no output has more precision than bfloat16"},
    [MUTANT_ONE_PERCENT] = {NEED_PERCENT,
                            "1 % is less than a unit in the last place of every output"},
    [MUTANT_F32_OUTPUT] = {NEED_DOUBLE, "no output is in double precision"},
};

bool mutant_applicable(enum mutant mutant, const struct problem *problem, struct strbuf *reason)
{
    const char *why = NULL;
    if (!some_output(problem, needs[mutant].need)) {
        why = needs[mutant].otherwise;
    }
    switch (mutant) {
    case MUTANT_INPUT_COPY:
    case MUTANT_WRITES_INPUT:
        if (!some_pure_input(problem)) {
            why = "there is no tensor that is only an input";
        }
        break;
    case MUTANT_PREVIOUS:
    case MUTANT_FIRST:
        if (problem->cuda) {
            why = "a candidate on a GPU keeps nothing from one launch to the next";
        }
        break;
    case MUTANT_OTHER_INPUTS:
        if (!some_input_changes(problem, mutant)) {
            why = "no input has two elements";
        }
        break;
    case MUTANT_BF16_INPUTS:
    case MUTANT_TF32_INPUTS:
        if (!some_input_changes(problem, mutant)) {
            why = "no input has values that the rounding would change";
        }
        break;
    default:
        break;
    }
    if (why) {
        strbuf_adds(reason, why);
    }
    return !why;
}
