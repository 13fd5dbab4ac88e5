#include "tests/cheats/battery.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/cheats/exec.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPETITIONS 2
#define TWIN_SLOWEST 0.2 // log2
#define OBJECT_MAX ((size_t)32 << 20)

__attribute__((noreturn)) static void die(const struct err *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(2);
}

void battery_open(struct battery *battery, const char *folder, const char *containing, bool full,
                  uint64_t seed)
{
    struct err err = ERR_INIT;

    *battery = (struct battery){.seed = seed, .max_seconds = 0.25, .launch_seconds = 0.5};
    compose_problems(battery->problem, full);
    compose_mechanisms(&battery->mechanisms, folder, containing);
    if (file_make_temp_dir(&battery->folder, "kcast-cheats", &err) != 0) {
        die(&err);
    }
}

void battery_close(struct battery *battery)
{
    (void)!file_remove_tree(battery->folder, NULL);
    free(battery->folder);
    if (battery->trial) {
        munmap(battery->trial, battery->trial_count * sizeof(*battery->trial));
    }
    compose_mechanisms_release(&battery->mechanisms);
    compose_problems_release(battery->problem);
}

void battery_plan(struct battery *battery, size_t rounds)
{
    size_t mechanisms = battery->mechanisms.count, most = mechanisms * rounds;
    struct stats_rng rng;

    stats_rng_init(&rng, battery->seed, 0x6368656174ULL);
    // The workers write into it, which are processes.
    battery->trial = mmap(NULL, most * sizeof(struct trial), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (battery->trial == MAP_FAILED) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ERR_SYSTEM, "no memory for the trials");
        die(&err);
    }
    uint64_t first = stats_rng_below(&rng, COMPOSE_PROBLEMS);
    for (size_t round = 0; round < rounds; round++) {
        struct trial *of_round = &battery->trial[battery->trial_count];
        for (uint32_t m = 0; m < mechanisms; m++) {
            uint32_t problem = (uint32_t)((first + m + round) % COMPOSE_PROBLEMS);
            // One that is not for all problems takes the next that it is for.
            while ((battery->mechanisms.list[m].on >> problem & 1) == 0) {
                problem = (problem + 1) % COMPOSE_PROBLEMS;
            }
            battery->trial[battery->trial_count++] =
                (struct trial){.mechanism = m, .problem = problem, .seed = stats_rng_u64(&rng)};
        }
        for (size_t i = mechanisms; i > 1; i--) {
            size_t other = stats_rng_below(&rng, i);
            struct trial swap = of_round[i - 1];
            of_round[i - 1] = of_round[other];
            of_round[other] = swap;
        }
    }
}

// ---- objects ----

// Returns the file of what the source became, which it makes if it is not there. verdict is NONE
// when there is an object.
static struct bytes compile(const struct battery *battery, const struct cheat_problem *problem,
                            const char *name, const struct bytes *source, bool reference,
                            struct called *ret)
{
    char *path = xasprintf("%s/%s-%s", battery->folder, problem->name, name);
    struct bytes object = {.data = NULL};
    struct err err = ERR_INIT;

    for (char *c = path + strlen(battery->folder) + 1; *c != '\0'; c++) {
        *c = *c == '/' ? '+' : *c;
    }
    ret->verdict = VERDICT_NONE;
    if (file_read(&object, path, OBJECT_MAX, &err) == 0) {
        free(path);
        return object;
    }
    struct strbuf header = STRBUF_INIT, glue = STRBUF_INIT;
    problem_header(problem->problem, reference, &header);
    problem_glue(problem->problem, reference, &glue);
    struct compile_plan plan = {.source = *source,
                                .header = (char *)strbuf_text(&header),
                                .glue = (char *)strbuf_text(&glue),
                                .max_seconds = 120,
                                .wall_seconds = 1e6,
                                .max_memory = (uint64_t)2 << 30,
                                .max_output = OBJECT_MAX};
    struct compile_outcome outcome;
    err = (struct err)ERR_INIT;
    if (exec_run("compile", &compile_plan_message, &plan, &compile_outcome_message, &outcome,
                 &err) != 0) {
        die(&err);
    }
    ret->verdict = (uint32_t)outcome.compiled->verdict;
    if (ret->verdict != VERDICT_NONE) {
        snprintf(ret->reason, sizeof(ret->reason), "%s", outcome.compiled->reason);
    } else {
        object = bytes_take(&outcome.object);
        if (file_replace(path, object.data, object.len, false, &err) != 0) {
            die(&err);
        }
    }
    message_clear(&compile_outcome_message, &outcome);
    strbuf_release(&header);
    strbuf_release(&glue);
    free(path);
    return object;
}

static struct bytes compile_candidate(const struct battery *battery,
                                      const struct cheat_problem *problem,
                                      const struct mechanism *mechanism, bool twin,
                                      struct called *ret)
{
    struct strbuf source = STRBUF_INIT;
    bool plain = twin && !mechanism->has_own_twin;
    char *name = plain ? xstrdup("twin") : xasprintf("%s%s", mechanism->name, twin ? "-twin" : "");

    compose_source(problem, mechanism, twin, &source);
    struct bytes text = {.data = (unsigned char *)source.data, .len = source.len};
    struct bytes object = compile(battery, problem, name, &text, false, ret);
    strbuf_release(&source);
    free(name);
    return object;
}

// ---- measurements ----

static struct called measure(const struct battery *battery, const struct trial *trial,
                             uint64_t seed, bool twin, size_t core)
{
    const struct cheat_problem *problem = &battery->problem[trial->problem];
    const struct mechanism *mechanism = &battery->mechanisms.list[trial->mechanism];
    struct called called = {.log2 = NAN, .lo = NAN, .hi = NAN}, ignored;
    struct bytes object = compile_candidate(battery, problem, mechanism, twin, &called);

    if (called.verdict != VERDICT_NONE) {
        return called;
    }
    struct measure_plan plan;
    message_init(&measure_plan_message, &plan);
    plan.problem = problem->json;
    plan.reference = compile(battery, problem, "reference", &problem->reference, true, &ignored);
    plan.baseline = compile(battery, problem, "baseline", &problem->baseline, false, &ignored);
    plan.candidate = object;
    plan.seed = seed;
    plan.core = core;
    plan.max_seconds = battery->max_seconds;
    plan.launch_seconds = battery->launch_seconds;
    plan.max_memory = (uint64_t)512 << 20;
    struct measure_outcome outcome;
    struct err err = ERR_INIT;
    if (exec_run("measure", &measure_plan_message, &plan, &measure_outcome_message, &outcome,
                 &err) != 0) {
        called.lost = true;
        snprintf(called.reason, sizeof(called.reason), "%s", err.text);
    } else {
        const struct result *result = outcome.result;

        called.verdict = (uint32_t)result->verdict;
        if (verdict_is_ratio(result->verdict) && result->speedup) {
            called.log2 = result->speedup->log2;
            called.lo = result->speedup->lo;
            called.hi = result->speedup->hi;
        }
        snprintf(called.reason, sizeof(called.reason), "%s", result->reason ? result->reason : "");
        message_clear(&measure_outcome_message, &outcome);
    }
    bytes_clear(&plan.reference);
    bytes_clear(&plan.baseline);
    bytes_clear(&plan.candidate);
    return called;
}

bool battery_is_ratio(const struct called *called)
{
    return !called->lost && verdict_is_ratio(called->verdict);
}

// Measures the candidate, and its twin where the comparison can depend on it: not where the
// candidate is so slow that its twin would have to be TWIN_SLOWEST slower than the baseline.
static bool is_breach(const struct battery *battery, struct trial *trial, uint64_t seed,
                      size_t core, struct called *candidate)
{
    *candidate = measure(battery, trial, seed, false, core);
    if (!battery_is_ratio(candidate) || battery->honest) {
        return candidate->lost;
    }
    if (!(candidate->lo > BATTERY_TOO_FAST - TWIN_SLOWEST)) {
        return false;
    }
    struct called twin = measure(battery, trial, seed, true, core);
    // Processes with the same code differ by a little. The quickest twin of the trial counts.
    if (battery_is_ratio(&twin) && (!trial->twin_measured || twin.hi > trial->twin.hi)) {
        trial->twin = twin;
        trial->twin_measured = true;
    }
    return candidate->verdict == VERDICT_FASTER && trial->twin_measured &&
           candidate->lo > BATTERY_TOO_FAST + trial->twin.hi;
}

static void run_trial(const struct battery *battery, struct trial *trial, size_t core)
{
    uint64_t begin = clock_now_ns(&clock_system);

    if (is_breach(battery, trial, trial->seed, core, &trial->candidate)) {
        trial->breaches = 1;
        for (uint64_t i = 1; i <= REPETITIONS && trial->breaches < 2; i++) {
            struct called again;
            trial->breaches += is_breach(battery, trial, trial->seed + i, core, &again);
        }
    }
    trial->seconds = clock_seconds(clock_now_ns(&clock_system) - begin);
    trial->done = true;
}

__attribute__((noreturn)) static void worker(const struct battery *battery, _Atomic size_t *next,
                                             size_t core)
{
    uint64_t begin = clock_now_ns(&clock_system);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        size_t i = atomic_fetch_add(next, 1);
        double seconds = clock_seconds(clock_now_ns(&clock_system) - begin);

        if (i >= battery->trial_count ||
            (battery->limit_seconds > 0 && seconds > battery->limit_seconds)) {
            _exit(0);
        }
        run_trial(battery, &battery->trial[i], core);
    }
}

// Compiles what every measurement needs, so that workers do not do it at once.
static void prepare(const struct battery *battery)
{
    for (size_t i = 0; i < COMPOSE_PROBLEMS; i++) {
        const struct cheat_problem *problem = &battery->problem[i];
        struct called ignored;
        struct bytes object =
            compile(battery, problem, "reference", &problem->reference, true, &ignored);

        bytes_clear(&object);
        object = compile(battery, problem, "baseline", &problem->baseline, false, &ignored);
        bytes_clear(&object);
    }
}

void battery_run(struct battery *battery)
{
    cpu_set_t allowed;
    _Atomic size_t *next =
        mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t workers = 0;

    if (next == MAP_FAILED || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ERR_SYSTEM, "the workers cannot be started");
        die(&err);
    }
    prepare(battery);
    fflush(NULL);
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed)) {
            pid_t pid = fork();
            if (pid == 0) {
                worker(battery, next, core);
            }
            workers += pid > 0;
        }
    }
    for (; workers > 0; workers--) {
        (void)wait(NULL);
    }
    munmap((void *)next, sizeof(*next));
}

// ---- words ----

void battery_describe(const struct battery *battery, const struct trial *trial, struct strbuf *out)
{
    const struct called *candidate = &trial->candidate;

    strbuf_addf(out, "%-10s %-32s ", battery->problem[trial->problem].name,
                battery->mechanisms.list[trial->mechanism].name);
    if (!trial->done) {
        strbuf_adds(out, "was not measured");
        return;
    }
    strbuf_addf(out, "%-13s", candidate->lost ? "no outcome" : verdict_name(candidate->verdict));
    if (battery_is_ratio(candidate)) {
        strbuf_addf(out, " %.3f [%.3f, %.3f]", exp2(candidate->log2), exp2(candidate->lo),
                    exp2(candidate->hi));
    }
    if (trial->twin_measured) {
        strbuf_addf(out, " twin %.3f [%.3f, %.3f]", exp2(trial->twin.log2), exp2(trial->twin.lo),
                    exp2(trial->twin.hi));
    }
    if (trial->breaches > 0) {
        strbuf_addf(out, " BREACH%s", trial->breaches > 1 ? " confirmed" : ", not repeated");
    }
    strbuf_addf(out, "  %s", candidate->reason);
}
