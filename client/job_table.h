// Jobs as `kcast jobs` and `kcast cancel` print them.
#ifndef CLIENT_JOB_TABLE_H
#define CLIENT_JOB_TABLE_H

#include "common/err.h"
#include "proto/all.h"
#include <stdbool.h>
#include <stddef.h>

// A table on stdout, or one JSON object per job.
void job_table_print(const struct job_info *job, size_t count, bool json);
// Job numbers from arguments. *ret is malloc'd.
MUST_CHECK int job_table_parse(uint64_t **ret, char **argument, size_t count, struct err *err);

#endif
