// Cheats on the CPU: no mechanism of tests/cheats/cpu is called faster than its honest twin, and
// what is honest and odd (tests/cheats/honest) gets a ratio. tests/cheats/battery.h has the rule.
//
// The order and the seeds follow from KCAST_CHEATS_SEED, which is drawn when it is not set and
// printed. With an argument it is no test but prints a table of the trials:
//     test_cpu table FOLDER ROUNDS [MECHANISM]      the battery's shapes
//     test_cpu full FOLDER ROUNDS [MECHANISM]       the problems' own shapes
// No trial of a table begins later than KCAST_CHEATS_SECONDS after the first; 0, or not set: no
// limit. It exits with 1 when a trial was not as it should be, and with 2 when none was made.
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/cheats/battery.h"
#include "tests/cheats/exec.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 10
// Seconds after which no trial begins: a slow machine sees less of the battery, and the rest in
// other runs, whose seeds are others.
#define SECONDS_CHEATS 120
#define SECONDS_HONEST 30
#define MECHANISMS_LEAST 60
#define HONEST_LEAST 30

static uint64_t battery_seed(void)
{
    const char *given = getenv("KCAST_CHEATS_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : stats_entropy();

    printf("KCAST_CHEATS_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static int need_machine(void **state)
{
    const char *variant = getenv("KCAST_VARIANT");
    char *reason = NULL;

    (void)state;
    if (variant && (strcmp(variant, "asan") == 0 || strcmp(variant, "tsan") == 0)) {
        reason = xstrdup("sanitizers change what is measured");
    } else if (exec_has_sandbox(&reason)) {
        return 0;
    }
    print_message("skipped because %s\n", reason);
    free(reason);
    return -1;
}

// Returns whether the trial, which was made, was as it should be.
static bool is_right(const struct battery *battery, const struct trial *trial)
{
    const struct mechanism *mechanism = &battery->mechanisms.list[trial->mechanism];

    if (mechanism->refused) {
        return strstr(trial->candidate.reason, mechanism->refused) &&
               !battery_is_ratio(&trial->candidate);
    }
    return battery->honest ? battery_is_ratio(&trial->candidate) : trial->breaches < 2;
}

static void print_trial(const struct battery *battery, const struct trial *trial, const char *end)
{
    struct strbuf line = STRBUF_INIT;

    battery_describe(battery, trial, &line);
    printf("%s%s\n", strbuf_text(&line), end);
    strbuf_release(&line);
}

static void run(const char *folder, bool honest, size_t least)
{
    struct battery battery;
    size_t wrong = 0, done = 0;

    battery_open(&battery, folder, NULL, false, battery_seed());
    battery.honest = honest;
    battery.limit_seconds = honest ? SECONDS_HONEST : SECONDS_CHEATS;
    if (honest) {
        battery.launch_seconds = 5; // nothing here waits for the limit
    }
    battery_plan(&battery, ROUNDS);
    battery_run(&battery);
    size_t count = battery.mechanisms.count;
    for (size_t i = 0; i < battery.trial_count; i++) {
        const struct trial *trial = &battery.trial[i];

        done += trial->done;
        if (trial->done && !is_right(&battery, trial)) {
            print_trial(&battery, trial, "");
            wrong++;
        }
    }
    battery_close(&battery);
    printf("%zu trials of %zu mechanisms\n", done, count);
    assert_true(count >= least);
    assert_true(done > 0);
    if (wrong > 0) {
        fail_msg("%zu of %zu trials of %zu mechanisms were not as they should be", wrong, done,
                 count);
    }
}

static void no_cheat_is_called_faster_than_its_honest_twin(void **state)
{
    if (need_machine(state) != 0) {
        skip();
    }
    run("cpu", false, MECHANISMS_LEAST);
}

static void honest_oddities_get_a_ratio(void **state)
{
    if (need_machine(state) != 0) {
        skip();
    }
    run("honest", true, HONEST_LEAST);
}

// Prints the trials of a mechanism on a problem, and counts those that were made.
static void print_trials(const struct battery *battery, uint32_t mechanism, uint32_t problem,
                         size_t *done, size_t *wrong)
{
    for (size_t i = 0; i < battery->trial_count; i++) {
        const struct trial *trial = &battery->trial[i];

        if (trial->mechanism == mechanism && trial->problem == problem && trial->done) {
            bool right = is_right(battery, trial);

            print_trial(battery, trial, right ? "" : "  NOT AS IT SHOULD BE");
            *done += 1;
            *wrong += !right;
        }
    }
}

static int print_table(int argc, char **argv)
{
    struct battery battery;
    const char *seconds = getenv("KCAST_CHEATS_SECONDS");
    size_t done = 0, wrong = 0;

    if (argc < 4) {
        fprintf(stderr, "usage: test_cpu table|full cpu|honest ROUNDS [MECHANISM]\n");
        return 2;
    }
    bool full = strcmp(argv[1], "full") == 0;
    battery_open(&battery, argv[2], argc > 4 ? argv[4] : NULL, full, battery_seed());
    battery.honest = strcmp(argv[2], "honest") == 0;
    battery.limit_seconds = seconds ? strtod(seconds, NULL) : 0;
    if (full) {
        battery.max_seconds = 2;
    }
    if (full || battery.honest) {
        battery.launch_seconds = 5; // nothing here waits for the limit
    }
    battery_plan(&battery, strtoull(argv[3], NULL, 0));
    battery_run(&battery);
    for (uint32_t m = 0; m < battery.mechanisms.count; m++) {
        for (uint32_t p = 0; p < COMPOSE_PROBLEMS; p++) {
            print_trials(&battery, m, p, &done, &wrong);
        }
    }
    printf("%zu of %zu trials of %zu mechanisms were made, %zu not as they should be\n", done,
           battery.trial_count, battery.mechanisms.count, wrong);
    battery_close(&battery);
    return done == 0 ? 2 : wrong > 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cheat_is_called_faster_than_its_honest_twin),
        cmocka_unit_test(honest_oddities_get_a_ratio),
    };

    if (argc > 1) {
        return print_table(argc, argv);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
