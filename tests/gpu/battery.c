// Measures sealed candidates that cheat, crash or are honest, and checks what they are called.
//   battery FOLDER [SEED]
// FOLDER is what tests/cheats/cuda/compose.sh makes. The first lines of each FOLDER/*.cu say what
// is expected (tests/cheats/candidate_head.h):
//   a verdict   it must have this verdict
//   ratio       it must have the verdict of a correct candidate
//   cheat       it is refused or wrong; or correct and no faster than its twin, the file that it
//               names or FOLDER/honest-PROBLEM.cu, which is the same code without the cheat: not
//               more than ALLOWED, both intervals considered
// All are measured in random order, one after the other in processes that have measured others
// before; then cheats again, each in a process of its own: first those that were called correct,
// then as many of the others as FRESH_SECONDS allow, in random order. A cheat that seems faster
// than its twin is measured with it REPEATS times more, and is a breach when it seems so each time.
// Each crash_* is then measured again, followed by an honest candidate of another search
// (tests/gpu/neighbour.h). The program uses the daemon at the address in $KCAST_POOL, else at the
// default one. The last line is "N passed, N failed".
#include "client/session.h"
#include "common/file.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"
#include "tests/cheats/candidate_head.h"
#include "tests/gpu/neighbour.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEMS_MAX 16
#define ALLOWED 1.01
#define REPEATS 2
#define FRESH_SECONDS 120
#define FRESH_BATCH 24 // cheats that are submitted at once there

// What one measurement came to.
struct called {
    uint64_t verdict; // VERDICT_NONE: the job ended without a result
    double log2;      // of the speedup, with its interval; NaN: none
    double lo;        // lower end
    double hi;        // upper end
    char reason[256]; // "" when there is none
};

struct entry {
    char *name; // of the file
    struct candidate_head head;
    struct digest digest;
    size_t problem;       // index of battery.problem
    struct entry *twin;   // of a cheat
    struct called latest; // of the last measurement
    bool measured;        // in the batch that is judged next
    bool suspect;         // the latest measurement was against the rule
    bool failed;
};

struct battery {
    struct session *session;
    struct job_client *pool;
    const char *folder;
    struct stats_rng rng;
    struct problem_dir problem[PROBLEMS_MAX];
    size_t problem_count;
    struct entry *entry; // owned, sorted by name
    size_t count;
    unsigned round; // how often something was submitted
};

// ---- what there is ----

static size_t problem_index(struct battery *battery, const char *name)
{
    for (size_t i = 0; i < battery->problem_count; i++) {
        if (strcmp(battery->problem[i].problem->name, name) == 0) {
            return i;
        }
    }
    struct err err = ERR_INIT;
    struct problem_dir *dir = &battery->problem[battery->problem_count];
    char *path = xasprintf("%s/problem/%s", battery->folder, name);
    if (battery->problem_count == PROBLEMS_MAX) {
        (void)err_set(&err, ERR_LIMIT, "more than %d problems", PROBLEMS_MAX);
        die(&err);
    }
    if (problem_dir_load(dir, path, &err) < 0) {
        die(&err);
    }
    free(path);
    samples_add_problem(battery->pool, dir);
    return battery->problem_count++;
}

static void read_entry(struct battery *battery, struct entry *entry, const char *name)
{
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s", battery->folder, name);
    struct bytes bytes;

    *entry = (struct entry){.name = xstrdup(name)};
    if (file_read(&bytes, path, PROBLEM_SOURCE_MAX, &err) < 0) {
        die(&err);
    }
    if (!candidate_head_read(&entry->head, (const char *)bytes.data, bytes.len)) {
        (void)err_set(&err, ERR_INVALID, "%s does not begin with \"// expect: VERDICT\"", path);
        die(&err);
    }
    job_client_add_blob(battery->pool, bytes.data, bytes.len, &entry->digest);
    entry->problem = problem_index(battery, entry->head.problem);
    bytes_clear(&bytes);
    free(path);
}

static bool is_cheat(const struct entry *entry)
{
    return strcmp(entry->head.expect, "cheat") == 0;
}

static struct entry *find_twin(const struct battery *battery, const struct entry *cheat)
{
    char *name = cheat->head.twin[0] ? xstrdup(cheat->head.twin)
                                     : xasprintf("honest-%s.cu", cheat->head.problem);
    struct entry *twin = NULL;

    for (size_t i = 0; i < battery->count; i++) {
        if (strcmp(battery->entry[i].name, name) == 0) {
            twin = &battery->entry[i];
        }
    }
    if (!twin) {
        struct err err = ERR_INIT;
        (void)err_set(&err, ERR_NOT_FOUND, "%s has no honest twin %s in the folder", cheat->name,
                      name);
        die(&err);
    }
    free(name);
    return twin;
}

static int is_source(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 3 && strcmp(entry->d_name + len - 3, ".cu") == 0;
}

static void read_entries(struct battery *battery)
{
    struct dirent **name;
    int count = scandir(battery->folder, &name, is_source, alphasort);

    battery->entry = xcalloc(count > 0 ? (size_t)count : 1, sizeof(*battery->entry));
    for (int i = 0; i < count; i++) {
        read_entry(battery, &battery->entry[battery->count++], name[i]->d_name);
        free(name[i]);
    }
    if (count >= 0) {
        free(name);
    }
    for (size_t i = 0; i < battery->count; i++) {
        if (is_cheat(&battery->entry[i])) {
            battery->entry[i].twin = find_twin(battery, &battery->entry[i]);
        }
    }
}

// ---- measuring ----

static void on_job(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct battery *battery = owner;
    struct called *outcome = &battery->entry[tag].latest;
    const char *reason = error ? error->text : info->reason;

    *outcome = (struct called){.log2 = NAN, .lo = NAN, .hi = NAN};
    if (!error && info->result) {
        outcome->verdict = info->result->verdict;
        reason = info->result->reason;
        if (info->result->speedup) {
            outcome->log2 = info->result->speedup->log2;
            outcome->lo = info->result->speedup->lo;
            outcome->hi = info->result->speedup->hi;
        }
    }
    (void)snprintf(outcome->reason, sizeof(outcome->reason), "%s", reason ? reason : "");
}

static void shuffle(struct battery *battery, struct entry **list, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = stats_rng_below(&battery->rng, i);
        struct entry *entry = list[i - 1];

        list[i - 1] = list[other];
        list[other] = entry;
    }
}

// Measures list[0 .. count), all of them submitted at once, in random order.
static void measure(struct battery *battery, struct entry **list, size_t count, bool fresh)
{
    shuffle(battery, list, count);
    battery->round++;
    for (size_t i = 0; i < count; i++) {
        struct job_spec spec;
        char key[128];

        list[i]->measured = true;
        problem_dir_spec(&battery->problem[list[i]->problem], JOB_MEASURE, &list[i]->digest, &spec);
        spec.repeat = stats_entropy() | 1;
        spec.fresh = fresh;
        (void)snprintf(key, sizeof(key), "%u-%s", battery->round, list[i]->name);
        job_client_submit(battery->pool, key, &spec, i, on_job, battery,
                          (uint64_t)(list[i] - battery->entry));
    }
    struct err err = ERR_INIT;
    if (job_client_drain(battery->pool, &err) < 0) {
        die(&err);
    }
}

// Whether the latest outcome is as it must be. A cheat needs its twin's of the same round.
static bool as_expected(const struct entry *entry)
{
    const struct called *outcome = &entry->latest;

    if (strcmp(entry->head.expect, "ratio") == 0) {
        return verdict_is_ratio(outcome->verdict);
    }
    if (!is_cheat(entry)) {
        return strcmp(verdict_name(outcome->verdict), entry->head.expect) == 0;
    }
    // All cheats compile (tests/executor/gpu/compile/test_cheats.c); one that does not here has
    // shown nothing, and neither has one that ended without a result.
    if (outcome->verdict == VERDICT_NONE || outcome->verdict == VERDICT_COMPILE_ERROR) {
        return false;
    }
    return !verdict_is_ratio(outcome->verdict) ||
           (verdict_is_ratio(entry->twin->latest.verdict) &&
            outcome->lo <= entry->twin->latest.hi + log2(ALLOWED));
}

static void print_entry(const struct battery *battery, const struct entry *entry, const char *mark)
{
    const struct called *outcome = &entry->latest;

    printf("%-4s %-34s %-11s %-13s", mark, entry->name,
           battery->problem[entry->problem].problem->name, verdict_name(outcome->verdict));
    if (isnan(outcome->log2)) {
        printf(" %-23s", "");
    } else {
        printf(" %.3f [%.3f, %.3f] ", exp2(outcome->log2), exp2(outcome->lo), exp2(outcome->hi));
    }
    if (entry->twin && !isnan(entry->twin->latest.log2)) {
        printf(" %.3f", exp2(entry->twin->latest.log2));
    } else {
        printf(" %-5s", "");
    }
    printf(" %s\n", outcome->reason);
}

// Measures the suspects and their twins again, which ends the suspicion where it was an accident.
static void measure_suspects(struct battery *battery)
{
    struct entry **list = xcalloc(battery->count, sizeof(struct entry *));

    for (unsigned repeat = 0; repeat < REPEATS; repeat++) {
        size_t count = 0;

        for (size_t i = 0; i < battery->count; i++) {
            bool wanted = battery->entry[i].suspect;

            for (size_t k = 0; k < battery->count; k++) {
                wanted = wanted || (battery->entry[k].suspect &&
                                    battery->entry[k].twin == &battery->entry[i]);
            }
            if (wanted) {
                list[count++] = &battery->entry[i];
            }
        }
        if (count == 0) {
            break;
        }
        measure(battery, list, count, false);
        for (size_t i = 0; i < count; i++) {
            if (list[i]->suspect) {
                list[i]->suspect = !as_expected(list[i]);
                print_entry(battery, list[i], list[i]->suspect ? "bad" : "well");
            }
        }
    }
    free(list);
}

// Prints what was measured, by name, and settles what is not as it must be.
static void judge(struct battery *battery)
{
    for (size_t i = 0; i < battery->count; i++) {
        struct entry *entry = &battery->entry[i];

        if (!entry->measured) {
            continue;
        }
        bool right = as_expected(entry);
        entry->suspect = !right && is_cheat(entry) && verdict_is_ratio(entry->latest.verdict);
        entry->failed = entry->failed || (!right && !entry->suspect);
        print_entry(battery, entry, right ? "ok" : entry->suspect ? "bad" : "FAIL");
        if (!right && !entry->suspect) {
            printf("     expected: %s\n", entry->head.expect);
        }
    }
    measure_suspects(battery);
    for (size_t i = 0; i < battery->count; i++) {
        struct entry *entry = &battery->entry[i];

        if (entry->suspect) {
            print_entry(battery, entry, "FAIL");
            entry->failed = true;
        }
        entry->suspect = entry->measured = false;
    }
    (void)fflush(stdout);
}

static void measure_all(struct battery *battery)
{
    struct entry **list = xcalloc(battery->count, sizeof(struct entry *));
    uint64_t start = uv_hrtime();

    for (size_t i = 0; i < battery->count; i++) {
        list[i] = &battery->entry[i];
    }
    printf("-- %zu candidates in random order\n", battery->count);
    measure(battery, list, battery->count, false);
    printf("   %.1f s\n", (double)(uv_hrtime() - start) * 1e-9);
    judge(battery);
    free(list);
}

// Lists the twins, then the cheats that were called correct, then the other cheats, in random order
// each. Returns how many there are; the first part has to be measured in any case.
static size_t list_for_fresh(struct battery *battery, struct entry **list, size_t *ret_first)
{
    size_t count = 0;

    for (unsigned part = 0; part < 3; part++) {
        size_t start = count;

        for (size_t i = 0; i < battery->count; i++) {
            struct entry *entry = &battery->entry[i];
            bool correct = verdict_is_ratio(entry->latest.verdict);

            if (part == 0 ? strncmp(entry->name, "honest-", 7) == 0
                          : is_cheat(entry) && correct == (part == 1)) {
                list[count++] = entry;
            }
        }
        shuffle(battery, list + start, count - start);
        if (part == 0) {
            *ret_first = count;
        }
    }
    return count;
}

static void measure_fresh(struct battery *battery)
{
    struct entry **list = xcalloc(battery->count, sizeof(struct entry *));
    uint64_t start = uv_hrtime();
    size_t batch, count = list_for_fresh(battery, list, &batch), done = 0;

    printf("-- the twins and cheats, each in a new process\n");
    while (done < count && (double)(uv_hrtime() - start) * 1e-9 < FRESH_SECONDS) {
        batch += FRESH_BATCH;
        if (batch > count - done) {
            batch = count - done;
        }
        measure(battery, list + done, batch, true);
        judge(battery);
        done += batch;
        batch = 0;
    }
    printf("   %zu of %zu in %.1f s\n", done, count, (double)(uv_hrtime() - start) * 1e-9);
    free(list);
}

// ---- all of it ----

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: battery FOLDER [SEED]\n");
        return 2;
    }
    struct battery battery = {.folder = argv[1]};
    uint64_t seed = argc == 3 ? strtoull(argv[2], NULL, 0) : stats_entropy();
    stats_rng_init(&battery.rng, seed, 0);
    printf("seed: %#llx\n", (unsigned long long)seed);
    struct session_options options = {.quiet = true, .pool = getenv("KCAST_POOL")};
    struct err err = ERR_INIT;
    char search[64];
    (void)snprintf(search, sizeof(search), "battery-%llx", (unsigned long long)stats_entropy());
    if (session_create(&battery.session, &options, &err) < 0 ||
        samples_open(&battery.pool, battery.session, search, &err) < 0) {
        die(&err);
    }
    read_entries(&battery);
    measure_all(&battery);
    measure_fresh(&battery);
    size_t passed = 0, total = battery.count;
    for (size_t i = 0; i < battery.count; i++) {
        passed += !battery.entry[i].failed;
    }
    for (size_t i = 0; i < battery.count; i++) {
        if (strncmp(battery.entry[i].name, "crash_", 6) == 0) {
            passed +=
                neighbour_is_served(battery.session, &battery.problem[battery.entry[i].problem],
                                    &battery.entry[i].digest, battery.entry[i].name);
            total++;
        }
    }
    for (size_t i = 0; i < battery.count; i++) {
        if (battery.entry[i].failed) {
            printf("FAIL %s\n", battery.entry[i].name);
        }
        free(battery.entry[i].name);
    }
    printf("%zu passed, %zu failed\n", passed, total - passed);
    job_client_close(battery.pool);
    session_free(battery.session);
    for (size_t i = 0; i < battery.problem_count; i++) {
        problem_dir_release(&battery.problem[i]);
    }
    free(battery.entry);
    return passed == total && total > 0 ? 0 : 1;
}
