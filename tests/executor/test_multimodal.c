// Samples with modes: their shift is found within the period and in whole periods. Samples without
// modes are compared as they are.
#include "common/mem.h"
#include "executor/multimodal.h"
#include "executor/timing.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RUNS 400
#define Z 3.3
#define PERIOD 170.0

// Times of 5 us plus whole periods. More periods are rarer.
static double launch(struct stats_rng *rng, double shift, double share)
{
    double modes = 0;

    while (stats_rng_unit(rng) < share && modes < 10) {
        modes++;
    }
    return 5000 + shift + PERIOD * modes + 12 * stats_rng_normal(rng);
}

static void shifts_are_found_within_and_in_periods(void **state)
{
    static const double shifts[] = {0, 3, 80, -85, 170, 200, -340};

    (void)state;
    for (size_t s = 0; s < sizeof(shifts) / sizeof(shifts[0]); s++) {
        double square = 0, plain_square = 0;
        size_t missed = 0;

        for (uint64_t run = 0; run < RUNS; run++) {
            double a[64], b[64], c[64], d[64], error;
            struct stats_rng rng;

            stats_rng_init(&rng, run, 5);
            for (size_t i = 0; i < 64; i++) {
                a[i] = c[i] = launch(&rng, 0, 0.5);
                b[i] = d[i] = launch(&rng, shifts[s], 0.5);
            }
            struct stats_shift shift = multimodal_shift(a, b, 64, Z);
            error = shift.shift - shifts[s];
            square += error * error;
            missed += shift.lo > shifts[s] || shift.hi < shifts[s];
            shift = stats_shift(c, 64, d, 64, Z);
            plain_square += (shift.shift - shifts[s]) * (shift.shift - shifts[s]);
        }
        assert_true(missed <= RUNS / 50);
        assert_true(square < plain_square / 2);
    }
}

static void with_one_mode_it_is_the_plain_shift(void **state)
{
    double a[64], b[64];
    struct stats_shift shift, plain;

    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 7, 5);
    for (size_t i = 0; i < 64; i++) {
        a[i] = 5000 + 200 * stats_rng_normal(&rng);
        b[i] = 5100 + 200 * stats_rng_normal(&rng);
    }
    shift = multimodal_shift(a, b, 64, Z);
    plain = stats_shift(a, 64, b, 64, Z);
    assert_true(shift.shift == plain.shift && shift.lo == plain.lo && shift.hi == plain.hi);
}

static void odd_samples_do_no_harm(void **state)
{
    double a[MODES_MOST], b[MODES_MOST];

    (void)state;
    for (size_t i = 0; i < MODES_MOST; i++) {
        a[i] = 1;
        b[i] = i % 2 ? 1 : 1e9;
    }
    struct stats_shift shift = multimodal_shift(a, b, MODES_MOST, Z);
    assert_true(shift.lo <= shift.hi);
    for (size_t i = 0; i < MODES_MOST; i++) {
        b[i] = a[i] = 5000;
    }
    shift = multimodal_shift(a, b, MODES_MOST, Z);
    assert_true(fabs(shift.shift) < 1e-6);
    shift = multimodal_shift(a, b, 3, Z);
    assert_true(isinf(shift.hi));
}

// Of more launches than are used, the first give the estimate.
static void more_launches_than_fit_are_left_out(void **state)
{
    enum { COUNT = MODES_MOST + 88 };
    double *a = xcalloc(COUNT, sizeof(*a)), *b = xcalloc(COUNT, sizeof(*b));
    struct stats_shift most, more;

    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 7, 6);
    for (size_t i = 0; i < COUNT; i++) {
        a[i] = launch(&rng, 0, 0.3);
        b[i] = launch(&rng, 40, 0.3);
    }
    most = multimodal_shift(a, b, MODES_MOST, Z);
    more = multimodal_shift(a, b, COUNT, Z);
    assert_true(more.shift == most.shift && more.lo == most.lo && more.hi == most.hi);
    free(a);
    free(b);
}

// ---- launches of an H200 ----

// The file has A/A runs of kernels of 4.4, 5.2, 8.9, 15.6 and 25.8 us, eight of each, one on a
// line: 512 times of the baseline and of the candidate in alternation, in steps of 32 ns, as CUDA
// events gave them.
#define LAUNCHES 512
#define PIECE 64

struct recorded {
    double most;    // longest kernel of this class, ns
    double allowed; // largest standard deviation of the estimate from PIECE launches of each arm
    double square;  // sum of squares of the estimates
    size_t pieces, outside;
};

static bool read_run(FILE *file, double ns[2][LAUNCHES])
{
    for (size_t i = 0; i < 2 * LAUNCHES; i++) {
        unsigned ticks;

        if (fscanf(file, "%u", &ticks) != 1) {
            return false;
        }
        ns[i % 2][i / 2] = 32.0 * ticks;
    }
    return true;
}

static void add_run(struct recorded *row, double ns[2][LAUNCHES])
{
    for (size_t at = 0; at < LAUNCHES; at += PIECE) {
        struct timing_estimate estimate = timing_of_launches(ns[0] + at, ns[1] + at, PIECE, 32, 0);

        row->square += estimate.log2 * estimate.log2 * M_LN2 * M_LN2;
        row->outside += estimate.lo > 0 || estimate.hi < 0;
        row->pieces++;
    }
}

static void recorded_launches_of_a_gpu_give_precise_estimates(void **state)
{
    const char *root = getenv("KCAST_ROOT");
    double ns[2][LAUNCHES], sorted[LAUNCHES];

    (void)state;
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/tests/data/exec/h200_launches.txt", root ? root : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    struct recorded row[] = {{.most = 4800, .allowed = 0.005},
                             {.most = 7000, .allowed = 0.005},
                             {.most = 12000, .allowed = 0.0015},
                             {.most = 20000, .allowed = 0.0015},
                             {.most = 1e9, .allowed = 0.001}};
    while (read_run(file, ns)) {
        struct recorded *at = row;

        memcpy(sorted, ns[0], sizeof(sorted));
        while (stats_median(sorted, LAUNCHES) > at->most) {
            at++;
        }
        add_run(at, ns);
    }
    (void)fclose(file);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        double sd = sqrt(row[i].square / (double)row[i].pieces);

        print_message("up to %g ns: sd %.3f %% in %zu pieces, 0 outside the interval %zu times\n",
                      row[i].most, sd * 100, row[i].pieces, row[i].outside);
        assert_int_equal(row[i].pieces, 8 * LAUNCHES / PIECE);
        assert_true(sd <= row[i].allowed);
        assert_true(row[i].outside <= 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifts_are_found_within_and_in_periods),
        cmocka_unit_test(with_one_mode_it_is_the_plain_shift),
        cmocka_unit_test(odd_samples_do_no_harm),
        cmocka_unit_test(more_launches_than_fit_are_left_out),
        cmocka_unit_test(recorded_launches_of_a_gpu_give_precise_estimates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
