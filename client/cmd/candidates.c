#include "client/cmd/candidates.h"

#include "common/file.h"
#include "common/stats.h"
#include "problem/problem.h"
#include <stdlib.h>
#include <string.h>

int candidates_read(struct candidate_file **ret, char **path, size_t count, struct err *err)
{
    struct candidate_file *file = xcalloc(count, sizeof(*file));
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        file[i].path = path[i];
        rc = file_read(&file[i].source, path[i], PROBLEM_SOURCE_MAX, err);
        if (rc == 0 && file[i].source.len == 0) {
            rc = err_set(err, ERR_INVALID, "%s is empty", path[i]);
        }
        if (rc == 0) {
            file[i].digest = digest_of(file[i].source.data, file[i].source.len);
        }
    }
    if (rc == 0) {
        *ret = file;
    } else {
        candidates_free(file, count);
    }
    return rc;
}

void candidates_add(struct candidate_file *file, size_t count, struct daemon_pool *daemon_pool)
{
    for (size_t i = 0; i < count; i++) {
        daemon_pool_add_blob(daemon_pool, file[i].source.data, file[i].source.len, &file[i].digest);
        bytes_clear(&file[i].source);
    }
}

void candidates_free(struct candidate_file *file, size_t count)
{
    for (size_t i = 0; file && i < count; i++) {
        if (file[i].compiled) {
            message_clear(&compiled_message, file[i].compiled);
        }
        if (file[i].result) {
            message_clear(&result_message, file[i].result);
        }
        bytes_clear(&file[i].source);
        free(file[i].compiled);
        free(file[i].result);
    }
    free(file);
}

char *candidates_search_name(const char *command)
{
    return xasprintf("%s-%016llx", command, (unsigned long long)stats_entropy());
}
