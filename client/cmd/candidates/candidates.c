#include "client/cmd/candidates/candidates.h"

#include "client/cmd/candidates/defines.h"
#include "common/file.h"
#include "common/stats.h"
#include "problem/candidate_form.h"
#include "problem/problem.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_source(struct bytes *ret, const char *path, struct err *err)
{
    int rc = strcmp(path, "-") == 0
                 ? file_read_fd(ret, STDIN_FILENO, PROBLEM_SOURCE_MAX, "stdin", err)
                 : file_read(ret, path, PROBLEM_SOURCE_MAX, err);
    if (rc == 0 && ret->len == 0) {
        rc = err_set(err, ERR_INVALID, "%s is empty", strcmp(path, "-") == 0 ? "stdin" : path);
        bytes_clear(ret);
    }
    return rc;
}

static int add_file(struct candidates *candidates, const char *path, const char *defines,
                    struct err *err)
{
    if (candidates->count == CANDIDATES_MAX) {
        return err_set(err, ERR_LIMIT, "there are more than %d candidates; measure them in parts",
                       CANDIDATES_MAX);
    }
    struct candidate_file file = {0};
    int rc = read_source(&file.source, path, err);
    if (rc != 0) {
        return rc;
    }
    file.path = xstrdup(path);
    rc = defines_apply(&file.source, candidates_name(&file), defines, &file.header_lines,
                       &file.params, err);
    if (rc != 0) {
        bytes_clear(&file.source);
        free(file.path);
        return rc;
    }
    file.digest = digest_of(file.source.data, file.source.len);
    candidates->file = xgrow(candidates->file, candidates->count, sizeof(file));
    candidates->file[candidates->count++] = file;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_folder(struct candidates *candidates, const char *path, const char *extension,
                      const char *defines, struct err *err)
{
    DIR *folder = opendir(path);
    if (!folder) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s cannot be read", path);
    }
    char **name = NULL;
    size_t count = 0, len = strlen(path);
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (candidate_is_file(entry->d_name, extension)) {
            name = xgrow(name, count, sizeof(*name));
            name[count++] =
                xasprintf("%s%s%s", path, path[len - 1] == '/' ? "" : "/", entry->d_name);
        }
    }
    closedir(folder);
    if (count > 0) {
        qsort(name, count, sizeof(*name), compare_names);
    }
    int rc = count > 0 ? 0
                       : err_set(err, ERR_INVALID, "%s has no file whose name ends in .%s", path,
                                 extension);
    for (size_t i = 0; i < count; i++) {
        rc = rc == 0 ? add_file(candidates, name[i], defines, err) : rc;
        free(name[i]);
    }
    free(name);
    return rc;
}

static bool is_folder(const char *path)
{
    struct stat what;
    return stat(path, &what) == 0 && S_ISDIR(what.st_mode);
}

int candidates_read(struct candidates *ret, char **path, size_t count, const char *extension,
                    const char *defines, struct err *err)
{
    struct candidates candidates = {0};
    size_t dashes = 0;
    int rc = 0;

    for (size_t i = 0; i < count; i++) {
        dashes += strcmp(path[i], "-") == 0;
    }
    if (dashes > 1) {
        return err_set(err, ERR_USAGE, "\"-\" stands for stdin, and stdin is read once");
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (strcmp(path[i], "-") != 0 && is_folder(path[i])) {
            rc = add_folder(&candidates, path[i], extension, defines, err);
        } else {
            rc = add_file(&candidates, path[i], defines, err);
        }
    }
    if (rc == 0) {
        *ret = candidates;
    } else {
        candidates_free(&candidates);
    }
    return rc;
}

void candidates_add(struct candidates *candidates, struct daemon_pool *daemon_pool)
{
    for (size_t i = 0; i < candidates->count; i++) {
        struct candidate_file *file = &candidates->file[i];
        daemon_pool_add_blob(daemon_pool, file->source.data, file->source.len, &file->digest);
        bytes_clear(&file->source);
    }
}

void candidates_free(struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++) {
        struct candidate_file *file = &candidates->file[i];
        if (file->compiled) {
            message_clear(&compiled_message, file->compiled);
        }
        if (file->result) {
            message_clear(&result_message, file->result);
        }
        bytes_clear(&file->source);
        free(file->path);
        free(file->params);
        free(file->compiled);
        free(file->result);
    }
    free(candidates->file);
    *candidates = (struct candidates){0};
}

const char *candidates_name(const struct candidate_file *file)
{
    return strcmp(file->path, "-") == 0 ? "<stdin>" : file->path;
}

char *candidates_search_name(const char *command)
{
    return xasprintf("%s-%016llx", command, (unsigned long long)stats_entropy());
}
