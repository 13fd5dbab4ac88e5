#include "client/candidates.h"

#include "common/file.h"
#include "common/stats.h"
#include "contract/problem.h"
#include <stdlib.h>
#include <string.h>

int candidates_read(struct candidate_file **ret, char **path, size_t count, struct fleet *fleet,
                    struct err *err)
{
    struct candidate_file *file = xcalloc(count, sizeof(*file));
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        struct bytes data = {0};
        file[i].path = path[i];
        code = file_read(&data, path[i], PROBLEM_SOURCE_MAX, err);
        if (code == 0 && data.len == 0) {
            code = err_set(err, ERR_INVALID, "%s is empty", path[i]);
        }
        if (code == 0) {
            fleet_add_blob(fleet, data.data, data.len, &file[i].digest);
        }
        bytes_clear(&data);
    }
    if (code == 0) {
        *ret = file;
    } else {
        free(file);
    }
    return code;
}

void candidates_free(struct candidate_file *file, size_t count)
{
    for (size_t i = 0; file != NULL && i < count; i++) {
        if (file[i].compiled != NULL) {
            message_clear(&compiled_message, file[i].compiled);
        }
        if (file[i].result != NULL) {
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
