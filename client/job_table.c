#include "client/job_table.h"

#include "client/show.h"
#include "common/mem.h"
#include "common/parse.h"
#include "contract/verdict.h"
#include "net/caller.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_json(const struct job_info *job)
{
    show_print(json_pack("{s:I, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "job",
                         (json_int_t)job->job, "state", job_state_name(job->state), "kind",
                         job->kind == JOB_COMPILE ? "compile" : "measure", "tenant",
                         show_text(job->tenant), "search", show_text(job->search), "key",
                         show_text(job->key), "attempt", (json_int_t)job->attempt, "device",
                         show_text(job->device), "reason", show_text(job->reason), "verdict",
                         job->result != NULL     ? show_text(verdict_name(job->result->verdict))
                         : job->compiled != NULL ? show_text(verdict_name(job->compiled->verdict))
                                                 : json_null()));
}

void job_table_print(const struct job_info *job, size_t count, bool json)
{
    if (!json && count == 0) {
        printf("no jobs\n");
    }
    for (size_t i = 0; i < count; i++) {
        if (json) {
            print_json(&job[i]);
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

int job_table_parse(uint64_t **ret, char **argument, size_t count, struct err *err)
{
    uint64_t *job = xcalloc(count + 1, sizeof(*job));
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        if (parse_u64(&job[i], argument[i], 1, UINT64_MAX, "the job's number", err) != 0) {
            code = err != NULL ? (int)err->code : ERR_USAGE;
        }
    }
    if (code == 0) {
        *ret = job;
    } else {
        free(job);
    }
    return code;
}
