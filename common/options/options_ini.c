// INI: libinih splits the lines, but this file hands them to it one by one. As packaged, the
// library does not tell its handler the line number, silently joins indented lines to the value
// above, and breaks lines that exceed its buffer.
#include "common/file.h"
#include "common/options/nearest.h"
#include "common/options/options_field.h"
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define INI_FILE_MAX ((size_t)1 << 20)

// The state that the line reader and the entry handler of one INI file share.
struct ini_job {
    const struct option_row *table;
    void *target;
    const char *path;
    const char *section;
    const struct options_group *group; // NULL: there is none
    void *opened;                      // the group's target whose section is being read; NULL: none
    const char *cursor;                // the rest of the file's text
    int line;                          // number of the last line that libinih got
    int failed_line;                   // the line at which err was set, 0: none
    struct err *err;                   // never NULL
};

__attribute__((format(printf, 2, 3))) static void refuse_line(struct ini_job *job,
                                                              const char *format, ...)
{
    if (job->failed_line != 0) {
        return;
    }
    va_list args;
    va_start(args, format);
    char text[ERR_TEXT_MAX];
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    job->failed_line = job->line;
    (void)err_set(job->err, ERR_INVALID, "%s:%d: %s", job->path, job->line, text);
}

// Opens the target of a section of the group, where the line is the header of one. libinih itself
// tells its handler of entries only, so that two sections of one name would become one.
static void open_section(struct ini_job *job, const char *line, size_t len)
{
    const char *prefix = job->group ? job->group->prefix : "";
    size_t prefix_len = strlen(prefix), end = 0;

    if (len == 0 || line[0] != '[') {
        return;
    }
    job->opened = NULL;
    while (end < len && line[end] != ']') {
        end++;
    }
    if (!job->group || end == len || end < prefix_len + 2 ||
        memcmp(line + 1, prefix, prefix_len) != 0 || line[1 + prefix_len] != ' ') {
        return; // the section that everything knows, or one that on_entry refuses
    }
    char *name = xstrndup(line + prefix_len + 2, end - prefix_len - 2);
    struct err reason = ERR_INIT;
    job->opened = job->group->open(job->group->owner, name, &reason);
    if (!job->opened) {
        refuse_line(job, "%s", reason.text);
    }
    free(name);
}

// Stands in for fgets. Returns one whole line per call and never a part of one, without its
// indentation, which libinih would take for a continuation of the value above.
static char *next_line(char *out, int size, void *stream)
{
    struct ini_job *job = stream;
    size_t len = strcspn(job->cursor, "\n");
    size_t blank = strspn(job->cursor, " \t");
    const char *start = job->cursor + (blank < len ? blank : len);
    size_t kept = (size_t)(job->cursor + len - start);

    if (*job->cursor == '\0') {
        return NULL;
    }
    job->line++;
    if (kept + 2 > (size_t)size) {
        if (*start != '#' && *start != ';') {
            refuse_line(job, "longer than %d characters", size - 2);
        }
        kept = 0;
    }
    open_section(job, start, kept);
    memcpy(out, start, kept);
    out[kept] = '\n';
    out[kept + 1] = '\0';
    job->cursor += len + (job->cursor[len] == '\n' ? 1 : 0);
    return out;
}

// Called by libinih for each entry. Returns 0 when it refuses the entry. libinih goes on all the
// same, so only the first refusal counts.
static int on_entry(void *user, const char *section, const char *name, const char *value)
{
    struct ini_job *job = user;
    void *target = job->opened ? job->opened : job->target;
    const struct option_row *row =
        options_find_name(job->opened ? job->group->table : job->table, name, strlen(name));

    if (job->failed_line != 0) {
        return 0;
    }
    if (!job->opened && strcmp(section, job->section) != 0) {
        if (section[0] == '\0') {
            refuse_line(job, "'%.60s' stands outside of section [%s]", name, job->section);
        } else if (job->group) {
            refuse_line(job, "unknown section [%s], only [%s] and [%s NAME] are known", section,
                        job->section, job->group->prefix);
        } else {
            refuse_line(job, "unknown section [%s], only [%s] is known", section, job->section);
        }
        return 0;
    }
    if (!row) {
        struct nearest nearest = {.word = name, .len = strlen(name)};

        for (const struct option_row *other = job->opened ? job->group->table : job->table;
             other->name; other++) {
            nearest_try(&nearest, other->name);
        }
        refuse_line(job, "unknown key '%.60s'%s%s%s", name, nearest.best ? "; did you mean '" : "",
                    nearest.best ? nearest.best : "", nearest.best ? "'?" : "");
        return 0;
    }
    struct err reason = ERR_INIT;
    if (options_set_field(row, target, value, row->name, &reason) != 0) {
        refuse_line(job, "%s", reason.text);
        return 0;
    }
    return 1;
}

int options_read_ini(const struct option_row *table, void *target, const char *path,
                     const char *section, struct err *err)
{
    return options_read_ini_groups(table, target, path, section, NULL, err);
}

int options_read_ini_groups(const struct option_row *table, void *target, const char *path,
                            const char *section, const struct options_group *group, struct err *err)
{
    struct err first = ERR_INIT;
    struct ini_job job = {.table = table,
                          .target = target,
                          .path = path,
                          .section = section,
                          .group = group,
                          .err = &first};
    struct bytes text = {0};
    int rc = file_read(&text, path, INI_FILE_MAX, err);
    if (rc != 0) {
        return rc;
    }
    if (memchr(text.data, '\0', text.len)) {
        rc = err_set(err, ERR_INVALID, "%s: not a text file", path);
        goto out;
    }
    job.cursor = (const char *)text.data;
    int bad_line = ini_parse_stream(next_line, &job, on_entry, &job);
    if (bad_line > 0 && (job.failed_line == 0 || bad_line < job.failed_line)) {
        // libinih returns the first line that it or the handler refuses. It refused this one
        // itself.
        err_clear(&first);
        (void)err_set(&first, ERR_INVALID, "%s:%d: neither 'key = value' nor '[section]'", path,
                      bad_line);
    } else if (bad_line < 0) {
        (void)err_set(&first, ERR_SYSTEM, "%s: cannot be parsed", path);
    }
    rc = first.code == ERR_NONE ? 0 : err_set(err, first.code, "%s", first.text);
out:
    bytes_clear(&text);
    return rc;
}
