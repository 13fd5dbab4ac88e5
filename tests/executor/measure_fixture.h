// A fake machine for measurements: it launches nothing, and says what it was asked for.
#ifndef TESTS_EXECUTOR_MEASURE_FIXTURE_H
#define TESTS_EXECUTOR_MEASURE_FIXTURE_H

#include "common/mem.h"
#include "common/strbuf.h"
#include "executor/measure.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PROBLEM                                                                                    \
    "{\"name\": \"p\", \"title\": \"y = x\", \"license\": \"MIT\", \"language\": \"c\","           \
    "\"entry\": \"p\", \"params\": [{\"name\": \"N\", \"type\": \"int\"}],"                        \
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\":"        \
    "[\"N\"], \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"            \
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"N\"],"            \
    "\"tolerance\": 4}], \"cases\": {\"check\": [{\"N\": 100}, {\"N\": 1}, {\"N\": 7}], "          \
    "\"bench\": ["                                                                                 \
    "{\"params\": {\"N\": 1000}, \"weight\": 0.5}, {\"params\": {\"N\": 2000}, \"weight\": 0.5}]," \
    "\"hidden\": {\"N\": {\"min\": 7, \"max\": 7}}},"                                              \
    "\"cache\": \"warm\", \"work\": {\"flops\": \"N\", \"bytes\": \"8*N\"}}"

// The machine.
struct fake {
    const char *failing; // the function that does not succeed; NULL: all do
    int with;            // what that function returns
    size_t succeeding;   // blocks that end before it does not succeed
    double ns[ARM_COUNT];
    double alone_ns;        // of the baseline
    double noise;           // blocks take turns in taking up to twice this share more
    double inputs_s;        // seconds of inputs that each launch adds
    enum block_state state; // of every block
    struct measure_peaks peaks;
    // What the machine has seen:
    struct measurement *measurement;
    struct strbuf log;  // its steps; of consecutive blocks of one case only the first
    const void *timing; // the case whose blocks run
    enum arm_index against;
    char order[5];
    size_t launched, blocks_ended; // launched: in the block
    int cases_open;                // cases whose data has been made and not freed
    bool closed;
};

static inline int step(struct fake *fake, const char *name, struct err *err)
{
    if (fake->failing && strcmp(fake->failing, name) == 0 &&
        fake->blocks_ended >= fake->succeeding) {
        return fake->with == MEASURE_STOP
                   ? measurement_stop(fake->measurement, VERDICT_CRASH, "%s it is", name)
                   : err_set(err, ERR_SYSTEM, "%s has failed", name);
    }
    return 0;
}

static inline uint64_t hidden_seed(const struct measure_plan *plan)
{
    return plan->seed;
}

static inline int open_fake(void *machine, struct measurement *measurement, struct err *err)
{
    struct fake *fake = machine;

    fake->measurement = measurement;
    measurement->seconds.inputs = 0;
    strbuf_adds(&fake->log, "open");
    return step(fake, "open", err);
}

static inline int start(void *machine, const struct shape_case *hidden, size_t hidden_count,
                        struct err *err)
{
    struct fake *fake = machine;

    (void)hidden;
    strbuf_addf(&fake->log, " start(%zu)", hidden_count);
    return step(fake, "start", err);
}

static inline void close_fake(void *machine)
{
    struct fake *fake = machine;

    assert_int_equal(fake->cases_open, 0);
    fake->closed = true;
}

static inline int data_create(void *machine, const struct measure_case *of, void **ret,
                              struct err *err)
{
    struct fake *fake = machine;
    int rc = step(fake, "data", err);

    if (rc == 0) {
        fake->cases_open++;
        *ret = (void *)(uintptr_t)of;
    }
    return rc;
}

static inline void data_free(void *machine, void *data)
{
    struct fake *fake = machine;

    (void)data;
    fake->cases_open--;
}

static inline int verify(void *machine, void *data, bool timed, struct err *err)
{
    const struct measure_case *of = data;
    struct fake *fake = machine;

    strbuf_addf(&fake->log, " %s %llu", timed ? "bench" : "check", (unsigned long long)of->index);
    return step(fake, timed ? "bench" : "check", err);
}

static inline int prepare_control(void *machine, void *data, struct err *err)
{
    const struct measure_case *of = data;
    struct fake *fake = machine;

    strbuf_addf(&fake->log, " control %llu", (unsigned long long)of->index);
    return step(fake, "control", err);
}

static inline int superblock(void *machine, void *data, enum arm_index second, bool last,
                             struct err *err)
{
    const struct measure_case *of = data;
    struct fake *fake = machine;

    if (fake->timing != data || fake->against != second) {
        strbuf_addf(&fake->log, " time %llu", (unsigned long long)of->index);
        fake->timing = data;
        fake->against = second;
    }
    fake->launched = 0;
    return last ? step(fake, "last", err) : step(fake, "superblock", err);
}

static inline int launch(void *machine, void *data, enum arm_index arm, uint64_t content,
                         struct launch_time *ret, struct err *err)
{
    struct fake *fake = machine;
    double more = fake->noise * (double)(fake->blocks_ended % 3);

    (void)data;
    assert_true(content >= MEASURE_CONTENTS);
    assert_true((content >= (uint64_t)1 << 32) == (fake->against == ARM_CONTROL));
    fake->order[fake->launched++] = arm == ARM_BASELINE ? 'A' : 'B';
    fake->measurement->seconds.inputs += fake->inputs_s;
    *ret = (struct launch_time){.cpu = fake->ns[arm] * (arm == ARM_BASELINE ? 1 : 1 + more),
                                .wall = 1};
    return step(fake, "launch", err);
}

static inline int end_pair(void *machine, void *data, enum arm_index second, uint64_t content,
                           bool judge, struct err *err)
{
    struct fake *fake = machine;

    (void)data;
    (void)content;
    assert_int_equal(second, fake->against);
    assert_true(!judge || second == ARM_CANDIDATE);
    if (fake->launched == 2) {
        return 0;
    }
    fake->blocks_ended++;
    assert_int_equal(fake->launched, 4);
    assert_true(strcmp(fake->order, "ABBA") == 0 || strcmp(fake->order, "BAAB") == 0);
    fake->launched = 0;
    return step(fake, "block", err);
}

static inline enum block_state block_state(void *machine, const struct timing_block *block)
{
    const struct fake *fake = machine;

    (void)block;
    return fake->state;
}

static inline double systematic(void *machine, double launch_ns)
{
    (void)machine;
    (void)launch_ns;
    return 0;
}

static inline struct measure_peaks peaks(void *machine, const void *data)
{
    const struct fake *fake = machine;

    (void)data;
    return fake->peaks;
}

static inline void outcome(void *machine, struct measure_outcome *ret)
{
    struct fake *fake = machine;

    ret->result->trust = xstrdup("none");
    ret->result->clock = xstrdup("a fake's");
    ret->retire = true;
    strbuf_adds(&fake->log, " outcome");
}

static inline int alone(void *machine, void *data, double *ret_ns, struct err *err)
{
    struct fake *fake = machine;
    (void)data;
    strbuf_adds(&fake->log, " alone");
    *ret_ns = fake->alone_ns;
    return step(fake, "alone", err);
}

static const struct measure_ops ops = {
    .noun = "fake",
    .disturbance = "the fake is disturbed",
    .rng_stream = 1,
    .hidden_seed = hidden_seed,
    .open = open_fake,
    .start = start,
    .close = close_fake,
    .data_create = data_create,
    .data_free = data_free,
    .verify = verify,
    .prepare_control = prepare_control,
    .superblock = superblock,
    .launch = launch,
    .end_pair = end_pair,
    .alone = alone,
    .block_state = block_state,
    .systematic = systematic,
    .peaks = peaks,
    .outcome = outcome,
};

// A machine on which the candidate is twice as fast and nothing is wrong.
static inline struct fake good(void)
{
    return (struct fake){
        .ns = {[ARM_BASELINE] = 20000, [ARM_CANDIDATE] = 10000, [ARM_CONTROL] = 20000},
        .alone_ns = NAN,
        .peaks = {.flops = NAN, .bytes = NAN},
        .log = STRBUF_INIT,
    };
}

#endif
