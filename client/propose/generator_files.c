// Candidates that exist already, as JSON lines (client/propose/candidate_line.h). A folder of
// files is turned into such lines when the run starts.
#include "client/propose/generator.h"

#include "client/propose/candidate_line.h"
#include "common/file.h"
#include "problem/candidate_form.h"
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct item {
    char *name;
    char *source;
};

struct files_generator {
    struct generator generator; // must be first: ops get a pointer to it
    struct item *item;          // point_count of them
};

static const struct item *item_of(const struct generator *generator, size_t point)
{
    return &((const struct files_generator *)(const void *)generator)->item[point];
}

static void files_name(const struct generator *generator, size_t point, struct strbuf *out)
{
    strbuf_adds(out, item_of(generator, point)->name);
}

static void files_source(const struct generator *generator, size_t point, struct strbuf *out)
{
    strbuf_adds(out, item_of(generator, point)->source);
}

static size_t files_params(const struct generator *generator, size_t point, struct fact **ret)
{
    (void)generator;
    (void)point;
    *ret = NULL;
    return 0;
}

static size_t files_neighbours(const struct generator *generator, size_t point, size_t *out,
                               size_t max)
{
    (void)generator;
    (void)point;
    (void)out;
    (void)max;
    return 0;
}

static void files_position(const struct generator *generator, size_t point, double *out)
{
    (void)generator;
    (void)point;
    (void)out;
}

static void files_free(struct generator *generator)
{
    struct files_generator *files = (struct files_generator *)(void *)generator;
    for (size_t i = 0; i < generator->point_count; i++) {
        free(files->item[i].name);
        free(files->item[i].source);
    }
    free(files->item);
    free(files);
}

static const struct generator_ops files_ops = {
    .name = files_name,
    .source = files_source,
    .params = files_params,
    .neighbours = files_neighbours,
    .position = files_position,
    .free = files_free,
};

// Parses one line, given without its newline. number is the line's, from 1.
static int parse_line(struct item *ret, const char *text, size_t len, const char *path,
                      size_t number, struct err *err)
{
    struct candidate_line line;
    int rc = candidate_line_parse(&line, text, len, err);

    if (rc != 0) {
        return err_wrap(err, "%s:%zu", path, number);
    }
    ret->source = line.source;
    ret->name = line.name ? line.name : xasprintf("line %zu", number);
    line.source = line.name = NULL;
    candidate_line_release(&line);
    return 0;
}

int generator_files(struct generator **ret, const struct bytes *text, const char *path,
                    struct err *err)
{
    struct files_generator *files = xcalloc(1, sizeof(*files));
    files->generator.ops = &files_ops;
    files->generator.is_files = true;
    size_t *count = &files->generator.point_count;
    const char *line = (const char *)text->data, *end = line + text->len;
    int rc = 0;
    for (size_t number = 1; rc == 0 && line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((newline ? newline : end) - line);
        if (!candidate_line_is_blank(line, len)) {
            if (*count == GENERATOR_POINT_MAX) {
                rc = err_set(err, ERR_LIMIT, "%s: more than %zu candidates", path,
                             GENERATOR_POINT_MAX);
                break;
            }
            if ((*count & (*count + 1)) == 0) {
                files->item = xrealloc(files->item, 2 * *count + 1, sizeof(*files->item));
            }
            rc = parse_line(&files->item[*count], line, len, path, number, err);
            *count += rc == 0;
        }
        line += len + 1;
    }
    if (rc == 0 && *count == 0) {
        rc = err_set(err, ERR_INVALID, "%s holds no candidates", path);
    }
    if (rc == 0) {
        *ret = &files->generator;
    } else {
        files_free(&files->generator);
    }
    return rc;
}

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

// Appends the file as one JSON line.
static int add_file(struct strbuf *out, const char *folder, const char *name, struct err *err)
{
    struct bytes data = {0};
    char *path = xasprintf("%s/%s", folder, name);
    int rc = file_read(&data, path, PROBLEM_SOURCE_MAX, err);
    if (rc == 0) {
        json_auto_t *source = json_stringn((const char *)data.data, data.len);
        json_auto_t *title = json_string(name);
        if (!source || !title || memchr(data.data, 0, data.len)) {
            rc = err_set(err, ERR_INVALID, "%s: its name or contents are no UTF-8 text", path);
        } else if (data.len > 0) {
            json_auto_t *object = json_pack("{s:O, s:O}", "name", title, "source", source);
            char *line = json_dumps(object, JSON_COMPACT);
            strbuf_addf(out, "%s\n", line);
            free(line);
        } else {
            rc = err_set(err, ERR_INVALID, "%s is empty", path);
        }
    }
    bytes_clear(&data);
    free(path);
    return rc;
}

static int read_folder(struct bytes *ret, const char *folder, const char *extension,
                       struct err *err)
{
    struct strbuf out;
    strbuf_init(&out, GENERATOR_SOURCE_MAX);
    struct dirent **entry = NULL;
    int count = scandir(folder, &entry, is_file, alphasort);
    int rc = count < 0 ? err_set_errno(err, ERR_SYSTEM, errno, "cannot read %s", folder) : 0;
    size_t sources = 0;
    for (int i = 0; i < count; i++) {
        if (rc == 0 && candidate_is_file(entry[i]->d_name, extension)) {
            rc = add_file(&out, folder, entry[i]->d_name, err);
            sources++;
        }
        free(entry[i]);
    }
    free(entry);
    if (rc == 0 && sources == 0) {
        rc = err_set(err, ERR_INVALID, "%s holds no .%s files", folder, extension);
    } else if (rc == 0 && out.truncated) {
        rc = err_set(err, ERR_LIMIT, "%s holds more than %zu bytes of candidates", folder,
                     GENERATOR_SOURCE_MAX);
    } else if (rc == 0) {
        *ret = strbuf_detach_bytes(&out);
    }
    strbuf_release(&out);
    return rc;
}

int generator_files_read(struct bytes *ret, const char *path, const struct problem *problem,
                         struct err *err)
{
    if (path[0] == '\0') {
        return err_set(err, ERR_USAGE,
                       "--generator pool: needs a folder or a file of JSON lines after the colon");
    }
    struct stat status;
    if (stat(path, &status) != 0) {
        return errno == ENOENT ? err_set(err, ERR_NOT_FOUND,
                                         "%s: there is no such folder or file of candidates", path)
                               : err_set_errno(err, ERR_SYSTEM, errno, "cannot read %s", path);
    }
    return S_ISDIR(status.st_mode) ? read_folder(ret, path, problem_extension(problem), err)
                                   : file_read(ret, path, GENERATOR_SOURCE_MAX, err);
}
