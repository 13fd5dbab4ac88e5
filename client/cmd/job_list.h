// Jobs as `kcast jobs` and `kcast cancel` print them.
#ifndef CLIENT_CMD_JOB_LIST_H
#define CLIENT_CMD_JOB_LIST_H

#include "client/pool/daemons.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

// A table on stdout, or one JSON object per job. url: the daemon that has them, to be named; NULL
// when there is only one.
void job_list_print(const char *url, const struct job_info *job, size_t count, bool json);
// Whether arguments are JOB or HOST/JOB.
MUST_CHECK int job_list_check(char **argument, size_t count, struct err *err);
// The jobs' numbers by daemon. *ret has an entry for each of daemons, in their order, and is freed
// by job_list_free.
MUST_CHECK int job_list_sort(struct job_ids **ret, const struct daemons *daemons, char **argument,
                             size_t count, struct err *err);
void job_list_free(struct job_ids *ids, size_t count); // NULL is fine

#endif
