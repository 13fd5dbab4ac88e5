#include "client/cmd/tables/job_list.h"

#include "client/show.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/printable.h"
#include "net/auth/caller.h"
#include "proto/verdict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_json(const char *url, const struct job_info *job)
{
    json_t *object = json_pack("{s:I, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "job",
                               (json_int_t)job->job, "state", job_state_name(job->state), "kind",
                               job->kind == JOB_COMPILE ? "compile" : "measure", "tenant",
                               show_text(job->tenant), "search", show_text(job->search), "key",
                               show_text(job->key), "attempt", (json_int_t)job->attempt, "device",
                               show_text(job->device), "reason", show_text(job->reason), "cause",
                               show_cause(job->cause), "verdict",
                               job->result     ? show_text(verdict_name(job->result->verdict))
                               : job->compiled ? show_text(verdict_name(job->compiled->verdict))
                                               : json_null());
    if (url) {
        json_object_set_new(object, "pool", show_text(url));
    }
    show_print(object);
}

void job_list_print(const char *url, const struct job_info *job, size_t count, bool json)
{
    if (!json && url) {
        printable_printf(stdout, "daemon %s\n", url);
    }
    if (!json && count == 0) {
        printable_printf(stdout, "no jobs\n");
    }
    for (size_t i = 0; i < count; i++) {
        if (json) {
            print_json(url, &job[i]);
            continue;
        }
        if (i == 0) {
            printable_printf(stdout, "%8s  %-9s  %-8s  %-8s  %-8s  %s\n", "job", "state", "kind",
                             "device", "key", "search");
        }
        bool named = job[i].tenant && strcmp(job[i].tenant, TENANT_LOCAL) != 0;
        printable_printf(
            stdout, "%8llu  %-9s  %-8s  %-8s  %-8s  %s%s%s%s%s\n", (unsigned long long)job[i].job,
            job_state_name(job[i].state), job[i].kind == JOB_COMPILE ? "compile" : "measure",
            job[i].device ? job[i].device : "-", job[i].key ? job[i].key : "-",
            named ? job[i].tenant : "", named ? "/" : "", job[i].search ? job[i].search : "-",
            job[i].reason ? ": " : "", job[i].reason ? job[i].reason : "");
    }
}

int job_list_all_there(const char *url, const uint64_t *asked, size_t asked_count,
                       const struct job_info *job, size_t count, struct err *err)
{
    for (size_t i = 0; i < asked_count; i++) {
        size_t at = 0;
        while (at < count && job[at].job != asked[i]) {
            at++;
        }
        if (at == count) {
            return err_set(err, ERR_NOT_FOUND,
                           "no job %llu at %s: it never was, or its result has been fetched",
                           (unsigned long long)asked[i], url);
        }
    }
    return 0;
}

static int parse_job(uint64_t *ret, const char *text, struct err *err)
{
    return parse_u64(ret, text, 1, UINT64_MAX, "the job's number", err);
}

int job_list_check(char **argument, size_t count, struct err *err)
{
    uint64_t job;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const char *slash = strrchr(argument[i], '/');
        rc = parse_job(&job, slash ? slash + 1 : argument[i], err);
    }
    return rc;
}

int job_list_sort(struct job_ids **ret, const struct daemons *daemons, char **argument,
                  size_t count, struct err *err)
{
    struct daemon_arguments *words;
    int rc = daemons_group_arguments(&words, daemons, argument, count, err);
    if (rc != 0) {
        return rc;
    }
    struct job_ids *ids = xcalloc(daemons->count + 1, sizeof(*ids));
    for (size_t i = 0; i < daemons->count && rc == 0; i++) {
        ids[i].jobs = xcalloc(words[i].count + 1, sizeof(*ids[i].jobs));
        for (size_t j = 0; j < words[i].count && rc == 0; j++) {
            rc = parse_job(&ids[i].jobs[j], words[i].word[j], err);
            ids[i].jobs_count += rc == 0;
        }
    }
    daemon_arguments_free(words, daemons->count);
    if (rc != 0) {
        job_list_free(ids, daemons->count);
        return rc;
    }
    *ret = ids;
    return 0;
}

void job_list_free(struct job_ids *ids, size_t daemons)
{
    for (size_t i = 0; ids && i < daemons; i++) {
        free(ids[i].jobs);
    }
    free(ids);
}
