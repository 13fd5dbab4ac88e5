#include "client/cmd/candidates.h"

#include "common/file.h"
#include "common/stats.h"
#include "problem/problem.h"
#include <stdlib.h>
#include <string.h>

int candidates_read(struct candidate_file **ret, char **path, size_t count,
                    struct daemon_pool *daemon_pool, struct err *err)
{
    struct candidate_file *file = xcalloc(count, sizeof(*file));
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        file[i].path = path[i];
        struct bytes data = {0};
        rc = file_read(&data, path[i], PROBLEM_SOURCE_MAX, err);
        if (rc == 0 && data.len == 0) {
            rc = err_set(err, ERR_INVALID, "%s is empty", path[i]);
        }
        if (rc == 0) {
            daemon_pool_add_blob(daemon_pool, data.data, data.len, &file[i].digest);
        }
        bytes_clear(&data);
    }
    if (rc == 0) {
        *ret = file;
    } else {
        free(file);
    }
    return rc;
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
        free(file[i].compiled);
        free(file[i].result);
    }
    free(file);
}

char *candidates_search_name(const char *command)
{
    return xasprintf("%s-%016llx", command, (unsigned long long)stats_entropy());
}
