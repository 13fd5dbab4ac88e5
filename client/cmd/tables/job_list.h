// Lists of jobs: how `kcast jobs` and `kcast cancel` print them, and how these and `kcast job`
// parse the job numbers of a command line. Asks no daemon.
#ifndef CLIENT_CMD_TABLES_JOB_LIST_H
#define CLIENT_CMD_TABLES_JOB_LIST_H

#include "client/pool/daemons.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

// Prints a table to stdout, or one JSON object per job. url is that of the daemon that has the
// jobs, to be printed; NULL when there is only one daemon.
void job_list_print(const char *url, const struct job_info *job, size_t count, bool json);
// ERR_NOT_FOUND when a job that was asked for is not among those of the daemon's answer.
MUST_CHECK int job_list_all_there(const char *url, const uint64_t *asked, size_t asked_count,
                                  const struct job_info *job, size_t count, struct err *err);
// ERR_INVALID unless each argument is JOB or HOST/JOB.
MUST_CHECK int job_list_check(char **argument, size_t count, struct err *err);
// Sorts the jobs' numbers by daemon. *ret has an entry for each of daemons, in their order, and is
// for job_list_free. Fails where daemons_find does for one of the arguments.
MUST_CHECK int job_list_sort(struct job_ids **ret, const struct daemons *daemons, char **argument,
                             size_t count, struct err *err);
void job_list_free(struct job_ids *ids, size_t daemons); // NULL is fine

#endif
