// What one launch took, by events or by the clock of a handover, and the clock of a multiprocessor
// meanwhile, by two stamps.
#include "executor/gpu/harness_handover.h"
#include "executor/gpu/harness_words.h"
#include <math.h>

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// Whether kc_stamp with the keys of this launch wrote the stamp.
static bool is_proven(const struct gpu_harness *harness, const uint64_t *stamp)
{
    uint64_t proof = mix(mix(mix(harness->stamp_key[0] ^ stamp[0]) + stamp[1]) ^ stamp[2]);

    return stamp[3] == proof + harness->stamp_key[1];
}

// The time between two stamps, in ns. Negative when the timer has been set back.
static double between(const uint64_t *first, const uint64_t *second)
{
    return (double)(int64_t)(second[0] - first[0]);
}

// The average clock, in Hz, of the multiprocessor between the two stamps of a launch. NaN when they
// were taken on different multiprocessors.
static double clock_between(const uint64_t *first, const uint64_t *second)
{
    double ns = between(first, second), cycles = (double)(second[1] - first[1]);

    return first[2] == second[2] && ns > 0 && cycles > 0 ? cycles / ns * 1e9 : NAN;
}

int gpu_harness_check_stamps(struct gpu_harness *harness, const struct gpu_case *data,
                             enum arm_index arm, uint64_t content, struct err *err)
{
    const uint64_t *first = harness->gpu->host_words + WORD_STAMP;

    if (is_proven(harness, first) && is_proven(harness, first + STAMP_WORDS)) {
        return 0;
    }
    return gpu_harness_wrote_outside(harness, data, arm, content, err);
}

// By the host's clock, in which the GPU also waits for the host and changes between two contexts:
// the clock of a multiprocessor meanwhile says nothing.
static int read_handover(const struct gpu_harness *harness, struct gpu_launch_time *ret)
{
    *ret = (struct gpu_launch_time){.ns = harness->handover->ns, .clock_hz = NAN};
    return 0;
}

static int read_events(struct gpu_harness *harness, struct gpu_launch_time *ret, struct err *err)
{
    const uint64_t *first = harness->gpu->host_words + WORD_STAMP;
    float ms = 0;
    int rc = gpu_check(harness->gpu,
                       harness->gpu->driver.event_elapsed(&ms, harness->begin, harness->end),
                       "reading events", err);

    if (rc != 0) {
        return rc;
    }
    *ret = (struct gpu_launch_time){.ns = (double)ms * 1e6,
                                    .clock_hz = clock_between(first, first + STAMP_WORDS)};
    return 0;
}

static void note(struct gpu_case *data, enum arm_index arm, double ns)
{
    if (arm == ARM_BASELINE) {
        data->baseline_ns = fmax(data->baseline_ns, ns);
    }
}

void gpu_harness_note_time(const struct gpu_harness *harness, struct gpu_case *data,
                           enum arm_index arm)
{
    const uint64_t *first = harness->gpu->host_words + WORD_STAMP;

    note(data, arm,
         harness->handover ? harness->handover->ns : between(first, first + STAMP_WORDS));
}

int gpu_harness_read_time(struct gpu_harness *harness, struct gpu_case *data, enum arm_index arm,
                          struct gpu_launch_time *ret, struct err *err)
{
    int rc = harness->handover ? read_handover(harness, ret) : read_events(harness, ret, err);

    if (rc == 0) {
        note(data, arm, ret->ns);
    }
    return rc;
}
