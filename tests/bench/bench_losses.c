// How soon a clear loser is found (executor/paired_timing.h), and how often something is taken for
// one: paired timings of one to three cases in which the candidate takes the baseline's time times
// a factor. Noise is that of launches recorded on an H200 (tests/data/exec/h200_launches.txt:
// kernels of 4 to 26 us against themselves), or normal, as on a core that others use. In rows with
// bursts, both launches of one arm are slowed in some blocks, which cannot be seen within a block.
// In rows named `mixed` the candidate is as fast as the baseline in the last case. In rows named
// `unequal` the factor is over an incumbent's time that is not equally far below the baseline's in
// each case.
//
// Then how soon it is known whether a candidate improves, in a search whose incumbent is twice as
// fast as the baseline, and how it compares with the baseline where there is no search. There the
// factor is over the incumbent's, or the baseline's time.
//   bench_losses [TIMINGS [near]]  of each row; default 2000; ten times as many with bursts, a tenth
//                                  near the incumbent and the baseline; near: only these rows
#include "common/mem.h"
#include "common/parse.h"
#include "executor/paired_timing.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CASES 3
#define RUNS_MOST 64
#define LAUNCHES 512 // of each arm, of a recorded run
#define TICK_NS 32.0
#define BURST_SHARE 0.02 // of blocks
#define BURST_TIMINGS 10 // times as many, because few of them go wrong
#define NEAR_TIMINGS 10  // times as few, because they take many launches
#define INCUMBENT 0.5    // its time over the baseline's
#define FIRST_LOOK_LAUNCHES (4 * TIMING_FIRST_LOOK + 2) // of both arms, for a case

static double recorded[RUNS_MOST][2][LAUNCHES]; // ns
static size_t recorded_count;

// One row of the table.
struct row {
    const char *name;
    size_t cases;
    double noise;  // standard deviation of a launch's logarithm; 0: recorded launches
    double quiet;  // that of all cases but the first; 0: the same
    double factor; // candidate's time over the baseline's
    bool mixed;    // 1 in the last case
    double burst;  // factor of the launches of one arm in a block with a burst; 0: no bursts
    double near;   // the factor is over this time, INCUMBENT or 1, and all looks are allowed; or 0
    bool unequal;  // the factor is over the incumbent's times, which are UNEQUAL
};

// An incumbent's times over the baseline's, in turn in each order; their mean is INCUMBENT.
static const double UNEQUAL[CASES] = {0.8, 0.3125, 0.5};

struct bench {
    struct paired_timing timing;
    struct stats_rng rng;
    const struct row *row;
    size_t run[CASES]; // recorded run of each case
    size_t at[CASES];  // next launch of it
    size_t turn;       // of UNEQUAL
    size_t launches;   // of both arms
};

static void read_recorded(void)
{
    const char *path = "tests/data/exec/h200_launches.txt";
    FILE *file = fopen(path, "r");
    unsigned ticks;

    if (!file) {
        fprintf(stderr, "bench_losses: %s cannot be read; run it in the root of the tree\n", path);
        exit(1);
    }
    for (size_t i = 0; fscanf(file, "%u", &ticks) == 1 && i < RUNS_MOST * 2 * LAUNCHES; i++) {
        recorded[i / (2 * LAUNCHES)][i % 2][i / 2 % LAUNCHES] = TICK_NS * ticks;
        recorded_count = i / (2 * LAUNCHES) + 1;
    }
    (void)fclose(file);
}

static int run_block(void *owner, struct timed_case *timed, struct timing_block *ret,
                     struct err *err)
{
    struct bench *bench = owner;
    const struct row *row = bench->row;
    size_t number = (size_t)(timed - bench->timing.cases);
    bool last = number + 1 == row->cases;
    double factor[2] = {1, row->mixed && last ? 1 : row->factor * (row->near > 0 ? row->near : 1)};

    double noise = row->quiet > 0 && number > 0 ? row->quiet : row->noise;

    factor[1] *= row->unequal ? UNEQUAL[(number + bench->turn) % CASES] : 1;

    (void)err;
    bench->launches += 4;
    if (row->burst > 0 && stats_rng_unit(&bench->rng) < BURST_SHARE) {
        factor[stats_rng_below(&bench->rng, 2)] *= row->burst;
    }
    for (size_t i = 0; i < 2; i++) {
        size_t at = bench->at[number]++ % LAUNCHES;

        for (size_t arm = 0; arm < 2; arm++) {
            double ns = noise > 0 ? 50000 * exp(noise * stats_rng_normal(&bench->rng))
                                  : recorded[bench->run[number]][arm][at];
            ret->cpu[arm][i] = ret->wall[arm][i] = ns * factor[arm];
        }
    }
    return 0;
}

static int superblock(void *owner, struct timed_case *timed, bool last, struct err *err)
{
    struct bench *bench = owner;

    (void)timed;
    (void)err;
    bench->launches += last ? 0 : 2;
    return 0;
}

static enum block_state block_state(void *owner, const struct timing_block *block)
{
    (void)owner;
    (void)block;
    return BLOCK_COUNTS;
}

static double systematic(void *owner, const struct timed_case *timed)
{
    (void)owner;
    (void)timed;
    return 0;
}

static void set_up(struct bench *bench, uint64_t number, const struct row *row)
{
    struct paired_timing *timing = &bench->timing;

    *bench = (struct bench){.row = row, .turn = number % CASES};
    stats_rng_init(&bench->rng, number, 3);
    *timing = (struct paired_timing){.owner = bench,
                                     .run_block = run_block,
                                     .superblock = superblock,
                                     .block_state = block_state,
                                     .systematic = systematic,
                                     .rng = &bench->rng,
                                     .short_ns = row->noise > 0 ? 0 : 1e5,
                                     .quantum_ns = TICK_NS,
                                     .max_seconds = 1e9,
                                     .looks = row->near > 0 ? TIMING_LOOKS : 1,
                                     .case_count = row->cases};
    timing->rule = (struct timing_rule){
        .precision_log2 = TIMING_PRECISION_LOG2,
        .anchor_log2 = row->near == INCUMBENT || row->unequal ? -log2(INCUMBENT) : NAN,
    };
    for (size_t i = 0; i < row->cases; i++) {
        timing->cases[i].weight = 1.0 / (double)row->cases;
        bench->run[i] = stats_rng_below(&bench->rng, recorded_count);
        bench->at[i] = stats_rng_below(&bench->rng, LAUNCHES);
    }
}

static double time_one(struct bench *bench, const struct row *row, uint64_t number)
{
    struct err err = ERR_INIT;

    set_up(bench, number, row);
    if (paired_timing_run(&bench->timing, &err) != 0) {
        fprintf(stderr, "bench_losses: %s\n", err.text);
        exit(1);
    }
    return bench->timing.combined.log2;
}

static void run_near(const struct row *row, uint64_t timings)
{
    struct bench *bench = xmalloc(sizeof(*bench));
    double truth = -log2(row->factor * row->near), square = 0;
    size_t launches = 0, above = 0, open = 0, missed = 0;

    for (uint64_t i = 0; i < timings; i++) {
        double log2_ratio = time_one(bench, row, i);

        square += (log2_ratio - truth) * (log2_ratio - truth);
        above += log2_ratio > -log2(row->near) + IMPROVEMENT_MARGIN_LOG2;
        open +=
            timing_verdict(&bench->timing.rule, &bench->timing.combined) == VERDICT_INCONCLUSIVE;
        missed += truth < bench->timing.combined.lo || truth > bench->timing.combined.hi;
        launches += bench->launches;
    }
    printf("%-14s  cases %zu, near %s %6.4f  launches %6.1f  seems to improve %6.2f %%  "
           "inconclusive %6.2f %%  error of the estimate %.2f %%  interval misses %.2f %%\n",
           row->name, row->cases, row->near == INCUMBENT ? "an incumbent" : "the baseline",
           row->factor, (double)launches / (double)timings, 100.0 * (double)above / (double)timings,
           100.0 * (double)open / (double)timings, 100 * M_LN2 * sqrt(square / (double)timings),
           100.0 * (double)missed / (double)timings);
    free(bench);
}

static void run_row(const struct row *row, uint64_t timings)
{
    struct bench *bench = xmalloc(sizeof(*bench));
    double truth = -log2(row->factor * (row->unequal ? INCUMBENT : 1));
    double square = 0;
    size_t lost = 0, launches = 0;

    truth *= row->mixed ? (double)(row->cases - 1) / (double)row->cases : 1;
    for (uint64_t i = 0; i < timings; i++) {
        double error = time_one(bench, row, i) - truth;
        square += error * error;
        lost += bench->timing.lost;
        launches += bench->launches;
    }
    char kind[32] = "";
    if (row->unequal) {
        (void)snprintf(kind, sizeof(kind), ", unequal");
    }
    if (row->burst > 0) {
        (void)snprintf(kind, sizeof(kind), ", bursts %.1f", row->burst);
    }
    printf("%-14s  cases %zu%-12s %5.2f  lost %7.3f %%  launches %6.1f of %3zu  error of the "
           "estimate %.2f %%\n",
           row->name, row->cases, row->mixed ? ", mixed" : kind, row->factor,
           100.0 * (double)lost / (double)timings, (double)launches / (double)timings,
           row->cases * FIRST_LOOK_LAUNCHES, 100 * M_LN2 * sqrt(square / (double)timings));
    free(bench);
}

// One kind of noise.
struct kind {
    const char *name;
    double noise, quiet; // as in a row
};

static void run_far(const struct kind *kind, uint64_t timings)
{
    static const double factor[] = {0.5, 1, 1.02, 1.05, 1.06, 1.08, 1.1, 1.2, 1.5, 2, 3};
    static const double burst[] = {1.6, 4};
    static const double burst_factor[] = {1, 1.02, 1.05};
    struct row row = {
        .name = kind->name, .cases = CASES, .noise = kind->noise, .quiet = kind->quiet};

    for (size_t i = 0; i < ARRAY_LEN(factor); i++) {
        row.factor = factor[i];
        run_row(&row, timings);
    }
    row.unequal = true;
    for (size_t i = 1; i < ARRAY_LEN(factor); i++) {
        row.factor = factor[i];
        run_row(&row, timings);
    }
    row.unequal = false;
    row.mixed = true;
    run_row(&row, timings);
    row.mixed = false;
    for (size_t b = 0; b < ARRAY_LEN(burst); b++) {
        row.burst = burst[b];
        for (row.cases = CASES; row.cases > 0; row.cases--) {
            for (size_t i = 0; i < ARRAY_LEN(burst_factor); i++) {
                row.factor = burst_factor[i];
                run_row(&row, BURST_TIMINGS * timings);
            }
        }
    }
}

int main(int argc, char **argv)
{
    static const double near[] = {1.02, 1.01, 1.005, 1.0025, 1, 0.9975, 0.995, 0.99, 0.98};
    static const struct kind kind[] = {{"launches, H200", 0, 0},
                                       {"1 % a launch", 0.01, 0},
                                       {"4 % a launch", 0.04, 0},
                                       {"4, 1 and 1 %", 0.04, 0.01}};
    struct err err = ERR_INIT;
    uint64_t timings = 2000;

    if (argc > 1 && parse_u64(&timings, argv[1], 1, 1000000, "TIMINGS", &err) != 0) {
        fprintf(stderr, "bench_losses: %s\n", err.text);
        return 2;
    }
    read_recorded();
    for (size_t k = 0; k < ARRAY_LEN(kind) && argc <= 2; k++) {
        run_far(&kind[k], timings);
    }
    for (size_t k = 0; k < 2 * ARRAY_LEN(kind); k++) {
        struct row row = {.name = kind[k % ARRAY_LEN(kind)].name,
                          .cases = CASES,
                          .noise = kind[k % ARRAY_LEN(kind)].noise,
                          .quiet = kind[k % ARRAY_LEN(kind)].quiet,
                          .near = k < ARRAY_LEN(kind) ? INCUMBENT : 1};

        for (size_t i = 0; i < ARRAY_LEN(near); i++) {
            row.factor = near[i];
            run_near(&row, timings / NEAR_TIMINGS + 1);
        }
    }
    return 0;
}
