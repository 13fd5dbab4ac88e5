#include "client/job_table.h"

#include "client/show.h"
#include "common/mem.h"
#include "common/parse.h"
#include "contract/verdict.h"
#include "net/caller.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_json(const char *url, const struct job_info *job)
{
    json_t *object = json_pack(
        "{s:I, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "job", (json_int_t)job->job, "state",
        job_state_name(job->state), "kind", job->kind == JOB_COMPILE ? "compile" : "measure",
        "tenant", show_text(job->tenant), "search", show_text(job->search), "key",
        show_text(job->key), "attempt", (json_int_t)job->attempt, "device", show_text(job->device),
        "reason", show_text(job->reason), "verdict",
        job->result != NULL     ? show_text(verdict_name(job->result->verdict))
        : job->compiled != NULL ? show_text(verdict_name(job->compiled->verdict))
                                : json_null());
    if (url != NULL) {
        json_object_set_new(object, "pool", show_text(url));
    }
    show_print(object);
}

void job_table_print(const char *url, const struct job_info *job, size_t count, bool json)
{
    if (!json && url != NULL) {
        printf("daemon %s\n", url);
    }
    if (!json && count == 0) {
        printf("no jobs\n");
    }
    for (size_t i = 0; i < count; i++) {
        if (json) {
            print_json(url, &job[i]);
            continue;
        }
        if (i == 0) {
            printf("%8s  %-9s  %-8s  %-8s  %-8s  %s\n", "job", "state", "kind", "device", "key",
                   "search");
        }
        bool named = job[i].tenant != NULL && strcmp(job[i].tenant, TENANT_LOCAL) != 0;
        printf("%8llu  %-9s  %-8s  %-8s  %-8s  %s%s%s%s%s\n", (unsigned long long)job[i].job,
               job_state_name(job[i].state), job[i].kind == JOB_COMPILE ? "compile" : "measure",
               job[i].device != NULL ? job[i].device : "-", job[i].key != NULL ? job[i].key : "-",
               named ? job[i].tenant : "", named ? "/" : "",
               job[i].search != NULL ? job[i].search : "-", job[i].reason != NULL ? ": " : "",
               job[i].reason != NULL ? job[i].reason : "");
    }
}

static int parse_job(uint64_t *ret, const char *text, struct err *err)
{
    return parse_u64(ret, text, 1, UINT64_MAX, "the job's number", err);
}

int job_table_check(char **argument, size_t count, struct err *err)
{
    uint64_t job;
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        const char *slash = strrchr(argument[i], '/');
        code = parse_job(&job, slash != NULL ? slash + 1 : argument[i], err);
    }
    return code;
}

int job_table_sort(struct job_ids **ret, const struct daemons *daemons, char **argument,
                   size_t count, struct err *err)
{
    struct daemon_words *words;
    int code = daemons_sort(&words, daemons, argument, count, err);
    if (code != 0) {
        return code;
    }
    struct job_ids *ids = xcalloc(daemons->count + 1, sizeof(*ids));
    for (size_t i = 0; i < daemons->count && code == 0; i++) {
        ids[i].jobs = xcalloc(words[i].count + 1, sizeof(*ids[i].jobs));
        for (size_t j = 0; j < words[i].count && code == 0; j++) {
            code = parse_job(&ids[i].jobs[j], words[i].word[j], err);
            ids[i].jobs_count += code == 0;
        }
    }
    daemon_words_free(words, daemons->count);
    if (code != 0) {
        job_table_free(ids, daemons->count);
        return code;
    }
    *ret = ids;
    return 0;
}

void job_table_free(struct job_ids *ids, size_t count)
{
    for (size_t i = 0; ids != NULL && i < count; i++) {
        free(ids[i].jobs);
    }
    free(ids);
}
