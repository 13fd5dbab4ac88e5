// Draws the hidden cases of a problem: shapes that a candidate's author does not know beforehand.
//
// Hidden cases are a function of problem and seed alone: each attempt has its own stream of the
// counter-based generator. Four kinds are drawn, because defects of kernels show at different
// extents: the smallest ones (loops that never run), primes (nothing divides them), odd numbers
// (half a vector remains), and one more or less than a multiple of 16 (a full vector and one
// element). A parameter whose range has no number of the wanted kind takes any number of its range.
// So does one with "multiple", unless a number meets both that rule and the kind.
#include "common/stats.h"
#include "problem/problem.h"

#define ATTEMPTS 16 // draws of one case before it is left out
// Multiples that are tried from a random position on. No gap between primes below 2^40 is longer.
#define SEARCH_MAX 1024

static bool is_prime(int64_t n)
{
    if (n < 4) {
        return n >= 2;
    }
    if (n % 2 == 0) {
        return false;
    }
    for (int64_t divisor = 3; divisor <= n / divisor; divisor += 2) {
        if (n % divisor == 0) {
            return false;
        }
    }
    return true;
}

static bool is_odd(int64_t n)
{
    return n % 2 != 0;
}

static bool is_beside_16(int64_t n)
{
    return n >= 15 && (n % 16 == 1 || n % 16 == 15);
}

static bool is_any(int64_t n)
{
    (void)n;
    return true;
}

// The kinds of extents, one per hidden case. The first kind is drawn from the low end of each
// range.
static bool (*const hidden_kind[PROBLEM_HIDDEN_CASES])(int64_t) = {is_any, is_prime, is_odd,
                                                                   is_beside_16};

// Draws a multiple in the range that is of this kind: the first one at or after a random position,
// continuing at the beginning of the range after its end. Any multiple when none is of this kind.
static int64_t draw(const struct hidden_range *range, size_t kind, struct stats_rng *rng)
{
    uint64_t first =
        ((uint64_t)range->min + (uint64_t)range->multiple - 1) / (uint64_t)range->multiple;
    uint64_t count = (uint64_t)range->max / (uint64_t)range->multiple - first + 1;
    uint64_t start = stats_rng_below(rng, kind == 0 && count > 4 ? 4 : count);
    for (uint64_t step = 0; step < count && step < SEARCH_MAX; step++) {
        int64_t value = (int64_t)(first + (start + step) % count) * range->multiple;
        if (hidden_kind[kind](value)) {
            return value;
        }
    }
    return (int64_t)(first + start) * range->multiple;
}

size_t problem_hidden_cases(const struct problem *problem, uint64_t seed,
                            struct shape_case out[static PROBLEM_HIDDEN_CASES])
{
    if (!problem->has_hidden) {
        return 0;
    }
    size_t count = 0;
    for (size_t kind = 0; kind < PROBLEM_HIDDEN_CASES; kind++) {
        bool found = false;
        for (size_t attempt = 0; attempt < ATTEMPTS && !found; attempt++) {
            struct shape_case shape = problem->check[0];
            shape.weight = 0.0;
            struct stats_rng rng;
            stats_rng_init(&rng, seed, kind * ATTEMPTS + attempt);
            for (size_t i = 0; i < problem->param_count; i++) {
                if (problem->param[i].type == PARAM_INT) {
                    shape.i[i] = draw(&problem->hidden[i], kind, &rng);
                }
            }
            found = problem_check_case(problem, &shape, NULL) == 0;
            if (found) {
                out[count++] = shape;
            }
        }
    }
    return count;
}
