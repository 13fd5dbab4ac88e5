// Measures composed candidates on all cores and compares each with its honest twin.
//
// A trial is one mechanism on one problem with one seed. It is a breach when the candidate is
// called FASTER and the lower end of its interval is above 1.02 times the upper end of its twin's,
// or when kcast-exec gives no outcome at all, which is how a candidate takes a device down. The
// twin is measured with the same plan and seed just after it. A breach is measured again with two
// other seeds, twin included, and counts when one of them is a breach too; of the twins so far the
// highest upper end is taken. Every measurement is a process of kcast-exec of its own, as it is for
// the daemon.
#ifndef TESTS_CHEATS_BATTERY_H
#define TESTS_CHEATS_BATTERY_H

#include "tests/cheats/compose.h"
#include <math.h>
#include <stdint.h>

#define BATTERY_TOO_FAST 0.02857 // log2(1.02)
#define BATTERY_REASON_MAX 240

// The interval of a verdict that is a ratio, in log2; NaN otherwise.
struct called {
    uint32_t verdict;
    double log2, lo, hi;
    bool lost; // there was no outcome
    char reason[BATTERY_REASON_MAX];
};

struct trial {
    uint32_t mechanism, problem;
    uint64_t seed;
    bool done;
    struct called candidate;
    struct called twin; // the quickest of those that were measured
    bool twin_measured;
    uint32_t breaches; // of the first measurement and the repetitions
    double seconds;
};

struct battery {
    struct cheat_problem problem[COMPOSE_PROBLEMS];
    struct mechanisms mechanisms;
    uint64_t seed;
    double max_seconds;    // of the timing of one measurement
    double launch_seconds; // limit of one launch
    char *folder;          // of compiled objects
    struct trial *trial;   // shared with the workers
    size_t trial_count;
    double limit_seconds; // no trial begins later; 0: no limit
    bool honest;          // nothing is a cheat, and nothing is compared with twins
};

// Reads problems and mechanisms and makes the folder. The caller may change max_seconds and
// launch_seconds before battery_run.
void battery_open(struct battery *battery, const char *folder, const char *containing, bool full,
                  uint64_t seed);
void battery_close(struct battery *battery);

// Makes the trials: so many rounds, in each of which each mechanism meets one problem, so that
// seven rounds are all problems; in each round in an order that follows from the seed.
void battery_plan(struct battery *battery, size_t rounds);
// Runs them, one worker for each core that this process may use, round after round.
void battery_run(struct battery *battery);

bool battery_is_ratio(const struct called *called);
// Appends one line about a trial.
void battery_describe(const struct battery *battery, const struct trial *trial, struct strbuf *out);

#endif
