// The processor clock does not count what other programs do on this core, so that a disturbed launch
// is nearly as good as any. Blocks that were disturbed in one arm more than in the other are void
// nevertheless. (A candidate that hides time from the clock would have to sleep while somebody else
// works for it: the sandbox leaves it neither.)
#include "executor/cpu/paired_run.h"
#include "common/clock.h"
#include <math.h>
#include <string.h>

#define FRESH_MAX 9
#define FRESH_RATIO 1.5
#define FRESH_EXCESS_NS 3000.0
#define FRESH_SECONDS 0.02
#define SLACK_NS 5000.0

static double now_s(void)
{
    return clock_seconds(clock_now_ns(&clock_system));
}

static int run_block(void *owner, struct lane *lane, struct timing_block *block, struct err *err)
{
    struct paired_run *paired_run = owner;
    static const unsigned char order[2][4] = {{0, 1, 1, 0}, {1, 0, 0, 1}};
    enum arm_index arm[2] = {paired_run->first, paired_run->second};
    struct launch_time time[2][2];
    size_t done[2] = {0, 0};
    int rc = 0;

    for (size_t i = 0; i < 4 && rc == 0; i++) {
        size_t which = order[lane->phase][i];
        rc = harness_launch(paired_run->harness, arm[which], lane->trial, lane->slot,
                            &time[which][done[which]], err);
        done[which]++;
    }
    arm_settle(&paired_run->harness->arm[paired_run->first]);
    arm_settle(&paired_run->harness->arm[paired_run->second]);
    if (rc != 0) {
        return rc;
    }
    for (size_t which = 0; which < 2; which++) {
        for (size_t i = 0; i < 2; i++) {
            block->cpu[which][i] = time[which][i].cpu;
            block->wall[which][i] = time[which][i].wall;
        }
    }
    return 0;
}

// A launch's wall time may exceed its processor time by so much when nothing is wrong.
static bool is_void(void *owner, const struct timing_block *block)
{
    const struct paired_run *paired_run = owner;

    return timing_block_void(block, 3 * paired_run->harness->wake_ns + SLACK_NS);
}

static double systematic(void *owner, const struct lane *lane)
{
    const struct paired_run *paired_run = owner;

    return timing_systematic(paired_run->harness->overhead_ns, paired_timing_median(lane));
}

int paired_run_run(struct paired_run *paired_run, struct err *err)
{
    paired_run->paired_timing.owner = paired_run;
    paired_run->paired_timing.run_block = run_block;
    paired_run->paired_timing.is_void = is_void;
    paired_run->paired_timing.systematic = systematic;
    paired_run->paired_timing.rng = &paired_run->harness->rng;
    paired_run->paired_timing.slots = TRIAL_CONTENTS;
    return paired_timing_run(&paired_run->paired_timing, err);
}

// ---- never-seen contents ----

struct fresh {
    double never_seen_ns[FRESH_MAX];  // the candidate's launches on each content
    double repeated_ns[FRESH_MAX];    // and on a repeated one just before
    double baseline_ratio[FRESH_MAX]; // the baseline's never seen / repeated: what the contents
                                      // themselves change
    size_t count;
};

// Whether the quickest launch on never-seen contents is still clearly slower than the usual one on
// repeated contents. The quickest: other programs on this core make launches slower, never faster,
// and who remembers answers is slow on every new content.
static bool fresh_is_slower(const struct fresh *fresh, double *ret_ratio)
{
    double repeated[FRESH_MAX], baseline[FRESH_MAX], least = INFINITY, usual;

    memcpy(repeated, fresh->repeated_ns, sizeof(repeated));
    memcpy(baseline, fresh->baseline_ratio, sizeof(baseline));
    for (size_t i = 0; i < fresh->count; i++) {
        least = fmin(least, fresh->never_seen_ns[i]);
    }
    usual = stats_median(repeated, fresh->count) * fmax(stats_median(baseline, fresh->count), 1.0);
    *ret_ratio = least / usual;
    return least > FRESH_RATIO * usual && least - usual > FRESH_EXCESS_NS;
}

static int launch_pair(struct paired_run *paired_run, struct lane *lane, struct trial *fresh,
                       enum arm_index arm, double ret_ns[2], struct err *err)
{
    struct launch_time repeated, never_seen;
    int rc = harness_launch(paired_run->harness, arm, lane->trial, 0, NULL, err);

    if (rc == 0) {
        rc = harness_launch(paired_run->harness, arm, lane->trial, 0, &repeated, err);
    }
    if (rc == 0) {
        // The same case at the same addresses, other contents.
        rc = harness_launch(paired_run->harness, arm, fresh, 0, &never_seen, err);
    }
    arm_settle(&paired_run->harness->arm[arm]);
    if (rc == 0) {
        ret_ns[0] = repeated.cpu;
        ret_ns[1] = never_seen.cpu;
    }
    return rc;
}

static int fresh_round(struct paired_run *paired_run, struct lane *lane, struct fresh *fresh,
                       struct err *err)
{
    struct trial trial;
    double candidate[2], baseline[2];
    const struct trial *usual = lane->trial;
    int rc = harness_trial_init(paired_run->harness, &trial, usual->shape, usual->index, err);

    if (rc != 0) {
        goto out;
    }
    rc = harness_content_make(paired_run->harness, &trial, 0, TRIAL_CONTENTS + fresh->count, err);
    if (rc != 0) {
        goto out;
    }
    rc = launch_pair(paired_run, lane, &trial, paired_run->second, candidate, err);
    if (rc != 0) {
        goto out;
    }
    rc = launch_pair(paired_run, lane, &trial, paired_run->first, baseline, err);
out:
    paired_run->harness->placed = NULL;
    harness_trial_release(&trial);
    if (rc == 0) {
        fresh->repeated_ns[fresh->count] = candidate[0];
        fresh->never_seen_ns[fresh->count] = candidate[1];
        fresh->baseline_ratio[fresh->count++] = baseline[1] / baseline[0];
    }
    return rc;
}

int paired_run_probe_fresh(struct paired_run *paired_run, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < paired_run->paired_timing.lane_count && rc == 0; i++) {
        struct lane *lane = &paired_run->paired_timing.lane[i];
        struct fresh fresh = {.count = 0};
        double start = now_s(), ratio = 0;
        bool suspicious = false;

        // One content costs a run of the reference; more are spent where they are cheap, and on who
        // looks suspicious.
        while (fresh.count < FRESH_MAX && rc == 0 &&
               (fresh.count == 0 || suspicious || now_s() - start < FRESH_SECONDS * lane->weight)) {
            rc = fresh_round(paired_run, lane, &fresh, err);
            suspicious = rc == 0 && fresh_is_slower(&fresh, &ratio);
        }
        if (rc == 0 && suspicious) {
            rc = harness_stop(paired_run->harness, VERDICT_QUARANTINED,
                              "the candidate is %.2f times slower on contents it has never seen "
                              "than on repeated ones, for %s",
                              ratio, ((const struct trial *)lane->trial)->name);
        }
    }
    return rc;
}
