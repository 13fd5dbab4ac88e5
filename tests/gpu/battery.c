// Measures sealed candidates that cheat, crash or are honest, and checks their verdicts.
//   battery PROBLEM FOLDER
// measures every FOLDER/*.cu. The first line of each says what is expected:
//   // expect: VERDICT
// VERDICT is the name of a verdict, "ratio" (any verdict of a correct candidate), "ratio not faster
// than X", or several of these, separated by ", or ". Each crash_* is then measured again, followed by an honest candidate of another
// search, whose verdict must come at most SERVED_S seconds after that of the crash. The program
// uses the daemon at the default address. The last line is "N passed, N failed".
#include "client/session.h"
#include "common/file.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FILES_MAX 256
#define SERVED_S 1.0

struct entry {
    char *name;
    char expect[64];
    bool passed;
    uint64_t verdict;
    double ratio; // speedup; NaN: none
    char *reason;
};

// Whether the verdict is this one of the expected ones, which ends at `end`.
static bool matches(const struct entry *entry, const char *expect, const char *end)
{
    static const char ratio[] = "ratio", most[] = "ratio not faster than ";
    const char *name = verdict_name(entry->verdict);
    size_t len = (size_t)(end - expect);

    if (len >= strlen(most) && strncmp(expect, most, strlen(most)) == 0) {
        return verdict_is_ratio(entry->verdict) &&
               entry->ratio <= strtod(expect + strlen(most), NULL);
    }
    if (len == strlen(ratio) && strncmp(expect, ratio, len) == 0) {
        return verdict_is_ratio(entry->verdict) && !isnan(entry->ratio);
    }
    return len == strlen(name) && strncmp(expect, name, len) == 0;
}

static bool as_expected(const struct entry *entry)
{
    static const char separator[] = ", or ";
    const char *expect = entry->expect, *next;

    while ((next = strstr(expect, separator))) {
        if (matches(entry, expect, next)) {
            return true;
        }
        expect = next + strlen(separator);
    }
    return matches(entry, expect, expect + strlen(expect));
}

static void on_job(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct entry *entry = (struct entry *)owner + tag;

    entry->ratio = NAN;
    if (error || !info->result) {
        entry->reason = xstrdup(error ? error->text : info->reason ? info->reason : "lost");
        return;
    }
    entry->verdict = info->result->verdict;
    if (info->result->speedup) {
        entry->ratio = exp2(info->result->speedup->log2);
    }
    entry->reason = info->result->reason ? xstrdup(info->result->reason) : NULL;
    entry->passed = as_expected(entry);
}

static void read_entry(struct entry *entry, struct job_client *pool, const char *folder,
                       const char *name, struct digest *ret)
{
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s", folder, name);
    struct bytes bytes;
    const char *mark = "// expect: ", *end;

    if (file_read(&bytes, path, PROBLEM_SOURCE_MAX, &err) < 0) {
        die(&err);
    }
    end = memchr(bytes.data, '\n', bytes.len);
    if (!end || strncmp((const char *)bytes.data, mark, strlen(mark)) != 0 ||
        (size_t)(end - (const char *)bytes.data) - strlen(mark) >= sizeof(entry->expect)) {
        (void)err_set(&err, ERR_INVALID, "%s does not begin with \"// expect: VERDICT\"", path);
        die(&err);
    }
    *entry = (struct entry){.name = xstrdup(name), .ratio = NAN};
    memcpy(entry->expect, bytes.data + strlen(mark),
           (size_t)(end - (const char *)bytes.data) - strlen(mark));
    job_client_add_blob(pool, bytes.data, bytes.len, ret);
    bytes_clear(&bytes);
    free(path);
}

static int is_source(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 3 && strcmp(entry->d_name + len - 3, ".cu") == 0;
}

// ---- the next candidate of another search ----

struct verdict_time {
    uint64_t at_ns, verdict;
    struct accounts seconds;
};

static void on_verdict(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct verdict_time *time = owner;

    (void)tag;
    time->at_ns = uv_hrtime();
    time->verdict = !error && info->result ? info->result->verdict : 0;
    if (time->verdict != 0 && info->result->seconds) {
        time->seconds = *info->result->seconds;
    }
}

// Measures one crash in a search of its own. Returns whether the honest candidate of another search
// had its verdict in time.
static bool neighbour(struct session *session, const struct problem_dir *dir, const char *folder,
                      const char *name, unsigned number)
{
    // The test before this one has used the prestarted processes. New ones need this time.
    const struct timespec rest = {.tv_sec = 2};
    struct verdict_time crash = {.at_ns = 0}, honest = {.at_ns = 0};

    (void)nanosleep(&rest, NULL);
    struct job_client *pool[2];
    struct err err = ERR_INIT;
    for (size_t i = 0; i < 2; i++) {
        char search[64];

        (void)snprintf(search, sizeof(search), "neighbour-%zu-%llx", i,
                       (unsigned long long)stats_entropy());
        if (samples_open(&pool[i], session, search, &err) < 0) {
            die(&err);
        }
        samples_add_problem(pool[i], dir);
    }
    struct digest digest[2];
    struct entry entry;
    read_entry(&entry, pool[0], folder, name, &digest[0]);
    struct strbuf source = STRBUF_INIT;
    strbuf_add(&source, (const char *)dir->baseline.data, dir->baseline.len);
    strbuf_addf(&source, "// %u %llx\n", number, (unsigned long long)stats_entropy());
    job_client_add_blob(pool[1], source.data, source.len, &digest[1]);
    struct job_spec spec;
    problem_dir_spec(dir, JOB_MEASURE, &digest[0], &spec);
    spec.repeat = stats_entropy() | 1;
    job_client_submit(pool[0], "crash", &spec, 0, on_verdict, &crash, 0);
    problem_dir_spec(dir, JOB_MEASURE, &digest[1], &spec);
    job_client_submit(pool[1], "honest", &spec, 0, on_verdict, &honest, 0);
    if (job_client_drain(pool[0], &err) < 0 || job_client_drain(pool[1], &err) < 0) {
        die(&err);
    }
    double later = ((double)honest.at_ns - (double)crash.at_ns) * 1e-9;
    printf("%s after %s (%s) another search's candidate is %s %.3f s later: GPU held %.3f s, "
           "thereof %.3f timing\n",
           later <= SERVED_S && verdict_is_ratio(honest.verdict) ? "ok  " : "FAIL", name,
           verdict_name(crash.verdict), verdict_name(honest.verdict), later, honest.seconds.held,
           honest.seconds.time);
    job_client_close(pool[0]);
    job_client_close(pool[1]);
    strbuf_release(&source);
    free(entry.name);
    return later <= SERVED_S && verdict_is_ratio(honest.verdict);
}

int main(int argc, char **argv)
{
    size_t passed = 0, total;
    char search[64];

    (void)snprintf(search, sizeof(search), "battery-%llx", (unsigned long long)stats_entropy());
    if (argc != 3) {
        fprintf(stderr, "usage: battery PROBLEM FOLDER\n");
        return 2;
    }
    struct session_options options = {.quiet = true};
    struct session *session = NULL;
    struct err err = ERR_INIT;
    struct job_client *pool = NULL;
    struct problem_dir dir;
    if (session_create(&session, &options, &err) < 0 ||
        samples_open(&pool, session, search, &err) < 0 ||
        problem_dir_load(&dir, argv[1], &err) < 0) {
        die(&err);
    }
    samples_add_problem(pool, &dir);
    struct dirent **name;
    int count = scandir(argv[2], &name, is_source, alphasort);
    struct entry entry[FILES_MAX];
    for (int i = 0; i < count && i < FILES_MAX; i++) {
        struct digest digest;

        read_entry(&entry[i], pool, argv[2], name[i]->d_name, &digest);
        struct job_spec spec;
        problem_dir_spec(&dir, JOB_MEASURE, &digest, &spec);
        job_client_submit(pool, name[i]->d_name, &spec, 0, on_job, entry, (uint64_t)i);
    }
    if (job_client_drain(pool, &err) < 0) {
        die(&err);
    }
    total = (size_t)count;
    for (int i = 0; i < count && i < FILES_MAX; i++) {
        passed += entry[i].passed;
        printf("%s %-28s %-14s", entry[i].passed ? "ok  " : "FAIL", entry[i].name,
               verdict_name(entry[i].verdict));
        if (!isnan(entry[i].ratio)) {
            printf(" %.3fx", entry[i].ratio);
        }
        printf(" %s\n", entry[i].reason ? entry[i].reason : "");
        if (!entry[i].passed) {
            printf("     expected: %s\n", entry[i].expect);
        }
    }
    for (int i = 0; i < count && i < FILES_MAX; i++) {
        if (strncmp(name[i]->d_name, "crash_", 6) == 0) {
            passed += neighbour(session, &dir, argv[2], name[i]->d_name, (unsigned)i);
            total++;
        }
    }
    printf("%zu passed, %zu failed\n", passed, total - passed);
    job_client_close(pool);
    session_free(session);
    return passed == total && count > 0 ? 0 : 1;
}
