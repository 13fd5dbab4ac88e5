// Blocks that a test of paired timing makes up. No clock decides anything. For the tests of
// executor/paired_timing.c, so it is a header only.
#ifndef TESTS_EXECUTOR_PAIRED_TIMING_FIXTURE_H
#define TESTS_EXECUTOR_PAIRED_TIMING_FIXTURE_H

#include "executor/paired_timing.h"

#include "common/mem.h"
#include "executor/measurement.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LOG_MAX 2048

struct fixture {
    struct paired_timing timing;
    struct stats_rng rng;
    // What each block takes; the index of a case's second pair is its number among the cases.
    double first_ns[2], second_ns[2][2];
    double noise_log2;  // every other block is off by so much, up and down in turn
    double noise_of[2]; // factor of it in each case
    size_t spike_every; // every so many blocks one launch of the first arm takes 16 times as long
    size_t timeless_every; // in every so many blocks one launch takes no time; 0: none
    size_t void_every;     // every so many blocks is void; 0: none, 1: all
    size_t escaped_every;  // of these, every so many are of state BLOCK_ESCAPED; 0: none
    double escaped_ns;     // of every launch of the second arm by the wall clock; 0: the same
    size_t voids;
    size_t unlike_every; // in every so many blocks the arms have these clocks; 0: never
    double unlike_hz[2];
    size_t failing;         // the block that does not succeed, counted from 1; 0: none
    int with;               // what that block returns
    double systematic_log2; // of each case
    // What has been run:
    size_t blocks, superblocks, closed; // closed: superblocks that were the last of a look
    uint64_t begun_on[LOG_MAX];         // the content before the first block of each superblock
    struct {
        bool phase;
        uint64_t content;
        unsigned judge;
        size_t superblock; // the number of its superblock
        const struct timed_case *of;
    } log[LOG_MAX];
};

// Whether the block that has just been run is one whose arms have different clocks.
static inline bool is_unlike(const struct fixture *f)
{
    return f->unlike_every > 0 && f->blocks % f->unlike_every == 0;
}

static inline int run_block(void *owner, struct timed_case *timed, struct timing_block *ret,
                            struct err *err)
{
    struct fixture *f = owner;
    size_t number = (size_t)(timed - f->timing.cases);
    double noise = f->noise_log2 * f->noise_of[number], off = f->blocks % 2 == 0 ? noise : -noise;

    assert_true(f->blocks < LOG_MAX);
    f->log[f->blocks].phase = timed->phase;
    f->log[f->blocks].content = timed->content;
    f->log[f->blocks].judge = timed->judge;
    f->log[f->blocks].superblock = f->superblocks;
    f->log[f->blocks++].of = timed;
    for (size_t i = 0; i < 2; i++) {
        ret->cpu[0][i] = ret->wall[0][i] = f->first_ns[i] * exp2(off);
        ret->cpu[1][i] = f->second_ns[number][i];
        ret->wall[1][i] = f->escaped_ns > 0 ? f->escaped_ns : ret->cpu[1][i];
    }
    for (size_t i = 0; i < 4 && is_unlike(f); i++) {
        ret->wall[i / 2][i % 2] = f->unlike_hz[i / 2];
    }
    if (f->spike_every > 0 && f->blocks % f->spike_every == 0) {
        ret->cpu[0][1] *= 16;
    }
    if (f->timeless_every > 0 && f->blocks % f->timeless_every == 0) {
        ret->cpu[1][0] = 0;
    }
    if (f->blocks == f->failing) {
        return f->with == MEASURE_STOP ? MEASURE_STOP
                                       : err_set(err, ERR_SYSTEM, "block %zu fails", f->blocks);
    }
    return 0;
}

static inline int superblock(void *owner, struct timed_case *timed, bool last, struct err *err)
{
    struct fixture *f = owner;

    (void)err;
    f->begun_on[f->superblocks] = timed->content;
    f->superblocks += !last;
    f->closed += last;
    return 0;
}

static inline enum block_state block_state(void *owner, const struct timing_block *block)
{
    struct fixture *f = owner;

    (void)block;
    if (is_unlike(f)) {
        return BLOCK_UNLIKE;
    }
    if (f->void_every == 0 || f->blocks % f->void_every != 0) {
        return BLOCK_COUNTS;
    }
    f->voids++;
    return f->escaped_every > 0 && f->voids % f->escaped_every == 0 ? BLOCK_ESCAPED
                                                                    : BLOCK_DISTURBED;
}

static inline double systematic(void *owner, const struct timed_case *timed)
{
    (void)timed;
    return ((const struct fixture *)owner)->systematic_log2;
}

// One case, in which the second arm takes half the time of the first, without any noise.
static inline int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    stats_rng_init(&f->rng, 1, 1);
    for (size_t i = 0; i < 2; i++) {
        f->first_ns[i] = 2000;
        f->noise_of[i] = 1;
        f->second_ns[0][i] = f->second_ns[1][i] = 1000;
    }
    f->timing.owner = f;
    f->timing.run_block = run_block;
    f->timing.superblock = superblock;
    f->timing.block_state = block_state;
    f->timing.systematic = systematic;
    f->timing.rng = &f->rng;
    f->timing.max_seconds = 1e9;
    f->timing.looks = TIMING_LOOKS;
    f->timing.rule.precision_log2 = TIMING_PRECISION_LOG2;
    f->timing.rule.anchor_log2 = NAN;
    f->timing.case_count = 1;
    f->timing.cases[0].weight = 1;
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    free(*state);
    return 0;
}

static inline void run(struct fixture *f)
{
    struct err err = ERR_INIT;

    if (paired_timing_run(&f->timing, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

#endif
