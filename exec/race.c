// The processor clock does not count what other programs do on this core, so that a disturbed launch
// is nearly as good as any. Blocks that were disturbed in one arm more than in the other are void
// nevertheless. (A candidate that hides time from the clock would have to sleep while somebody else
// works for it: the sandbox leaves it neither.)
#include "exec/race.h"
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
    struct race *race = owner;
    static const unsigned char order[2][4] = {{0, 1, 1, 0}, {1, 0, 0, 1}};
    enum arm_index arm[2] = {race->first, race->second};
    struct launch_time time[2][2];
    size_t done[2] = {0, 0};
    int status = 0;

    for (size_t i = 0; i < 4 && status == 0; i++) {
        size_t which = order[lane->phase][i];
        status = judge_launch(race->judge, arm[which], lane->trial, lane->slot,
                              &time[which][done[which]], err);
        done[which]++;
    }
    arm_settle(&race->judge->arm[race->first]);
    arm_settle(&race->judge->arm[race->second]);
    if (status != 0) {
        return status;
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
    const struct race *race = owner;

    return timing_block_void(block, 3 * race->judge->wake_ns + SLACK_NS);
}

static double systematic(void *owner, const struct lane *lane)
{
    const struct race *race = owner;

    return timing_systematic(race->judge->overhead_ns, contest_median(lane));
}

int race_run(struct race *race, struct err *err)
{
    race->contest.owner = race;
    race->contest.run_block = run_block;
    race->contest.is_void = is_void;
    race->contest.systematic = systematic;
    race->contest.rng = &race->judge->rng;
    race->contest.slots = TRIAL_CONTENTS;
    return contest_run(&race->contest, err);
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

static int launch_pair(struct race *race, struct lane *lane, struct trial *fresh,
                       enum arm_index arm, double ret_ns[2], struct err *err)
{
    struct launch_time repeated, never_seen;
    int status = judge_launch(race->judge, arm, lane->trial, 0, NULL, err);

    if (status == 0) {
        status = judge_launch(race->judge, arm, lane->trial, 0, &repeated, err);
    }
    if (status == 0) {
        // The same case at the same addresses, other contents.
        status = judge_launch(race->judge, arm, fresh, 0, &never_seen, err);
    }
    arm_settle(&race->judge->arm[arm]);
    if (status == 0) {
        ret_ns[0] = repeated.cpu;
        ret_ns[1] = never_seen.cpu;
    }
    return status;
}

static int fresh_round(struct race *race, struct lane *lane, struct fresh *fresh, struct err *err)
{
    struct trial trial;
    double candidate[2], baseline[2];
    const struct trial *usual = lane->trial;
    int status = judge_trial_init(race->judge, &trial, usual->shape, usual->index, err);

    if (status == 0) {
        status = judge_content_make(race->judge, &trial, 0, TRIAL_CONTENTS + fresh->count, err);
    }
    if (status == 0) {
        status = launch_pair(race, lane, &trial, race->second, candidate, err);
    }
    if (status == 0) {
        status = launch_pair(race, lane, &trial, race->first, baseline, err);
    }
    race->judge->placed = NULL;
    judge_trial_release(&trial);
    if (status == 0) {
        fresh->repeated_ns[fresh->count] = candidate[0];
        fresh->never_seen_ns[fresh->count] = candidate[1];
        fresh->baseline_ratio[fresh->count++] = baseline[1] / baseline[0];
    }
    return status;
}

int race_probe_fresh(struct race *race, struct err *err)
{
    int status = 0;

    for (size_t i = 0; i < race->contest.lane_count && status == 0; i++) {
        struct lane *lane = &race->contest.lane[i];
        struct fresh fresh = {.count = 0};
        double start = now_s(), ratio = 0;
        bool suspicious = false;

        // One content costs a run of the reference; more are spent where they are cheap, and on who
        // looks suspicious.
        while (fresh.count < FRESH_MAX && status == 0 &&
               (fresh.count == 0 || suspicious || now_s() - start < FRESH_SECONDS * lane->weight)) {
            status = fresh_round(race, lane, &fresh, err);
            suspicious = status == 0 && fresh_is_slower(&fresh, &ratio);
        }
        if (status == 0 && suspicious) {
            status = judge_stop(race->judge, VERDICT_QUARANTINED,
                                "the candidate is %.2f times slower on contents it has never seen "
                                "than on repeated ones, for %s",
                                ratio, ((const struct trial *)lane->trial)->name);
        }
    }
    return status;
}
