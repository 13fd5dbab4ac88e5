// Reads, checks and writes spaces. Design: a space is checked as a whole when it is read and before
// it is written, so all others can rely on what space_check() says. Limits hold for the packed file
// and for its unpacked content. Nothing is read or written in place: the content is built in
// memory, and the file is replaced at the end.
#include "client/space/space.h"
#include "client/space/gzip.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/printable.h"
#include "proto/verdict.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "KCSPACE1"
#define MAGIC_LEN 8
#define HEAD_LEN 4 // bytes of a frame's length

// ---- reading ----

struct reader {
    const unsigned char *at, *end;
    const char *path;
};

static int next(struct reader *reader, const struct message *message, void *ret, struct err *err)
{
    const unsigned char *head = reader->at;
    size_t left = (size_t)(reader->end - reader->at);

    if (left < HEAD_LEN) {
        return err_set(err, ERR_CORRUPT, "%s: the file ends too early", reader->path);
    }
    size_t len =
        (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (len > left - HEAD_LEN) {
        return err_set(err, ERR_CORRUPT, "%s: the file ends too early", reader->path);
    }
    int rc = message_read(message, ret, head + HEAD_LEN, len, err);
    if (rc != 0) {
        err->code = ERR_CORRUPT;
        return err_wrap(err, "%s", reader->path);
    }
    reader->at += HEAD_LEN + len;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// The first candidate that has parameters; NULL when none has.
static const struct space_candidate *first_with_params(const struct space *space)
{
    for (uint64_t i = 0; i < space->head.candidates; i++) {
        if (space->candidate[i].params_count > 0) {
            return &space->candidate[i];
        }
    }
    return NULL;
}

static bool same_params(const struct space_candidate *a, const struct space_candidate *b)
{
    bool same = a->params_count == b->params_count;

    for (size_t i = 0; i < a->params_count && same; i++) {
        same = strcmp(a->params[i].name, b->params[i].name) == 0 && isfinite(a->params[i].value);
    }
    return same;
}

// Refuses a name that is not printable. NULL is fine.
static int check_shown(const char *path, const char *what, const char *name, struct err *err)
{
    if (!name || printable_check(what, name, err) == 0) {
        return 0;
    }
    if (err) {
        err->code = ERR_CORRUPT;
    }
    (void)err_wrap(err, "%s", path);
    return ERR_CORRUPT;
}

static int check_names(const struct space *space, const char *path, struct err *err)
{
    size_t count = (size_t)space->head.candidates;
    char **name = xcalloc(count, sizeof(*name));

    for (size_t i = 0; i < count; i++) {
        name[i] = space->candidate[i].name;
    }
    qsort(name, count, sizeof(*name), by_name);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = check_shown(path, "the name of a candidate", name[i], err);
    }
    for (size_t i = 1; i < count && rc == 0; i++) {
        if (strcmp(name[i - 1], name[i]) == 0) {
            rc = err_set(err, ERR_CORRUPT, "%s: two candidates are called \"%.100s\"", path,
                         name[i]);
        }
    }
    free(name);
    return rc;
}

static int check_count(const struct space *space, const char *path, struct err *err)
{
    return space->head.candidates >= 1 && space->head.candidates <= SPACE_CANDIDATES_MAX
               ? 0
               : err_set(err, ERR_CORRUPT, "%s: a space has 1 to %zu candidates", path,
                         SPACE_CANDIDATES_MAX);
}

int space_check(const struct space *space, const char *path, struct err *err)
{
    int rc = check_count(space, path, err);
    if (rc != 0) {
        return rc;
    }
    const struct space_candidate *first = first_with_params(space);
    for (size_t i = 0; i < space->head.candidates; i++) {
        const struct space_candidate *c = &space->candidate[i];

        if (c->params_count > 0 && !same_params(c, first)) {
            return err_set(err, ERR_CORRUPT,
                           "%s: candidate \"%.100s\" has other parameters than \"%.100s\"", path,
                           c->name, first->name);
        }
        if (!c->compiled && !c->result) {
            return err_set(err, ERR_CORRUPT, "%s: candidate \"%.100s\" has no outcome", path,
                           c->name);
        }
    }
    rc = check_shown(path, "the problem's name", space->head.problem, err);
    rc = rc == 0 ? check_shown(path, "the device class", space->head.device_class, err) : rc;
    rc = rc == 0 ? check_shown(path, "the origin", space->head.origin, err) : rc;
    return rc == 0 ? check_names(space, path, err) : rc;
}

static int read_candidates(struct space *space, struct reader *reader, struct err *err)
{
    size_t count = (size_t)space->head.candidates, room = 0;
    space->head.candidates = 0; // counts those that space_release has to release
    while (space->head.candidates < count) {
        if (space->head.candidates == room) {
            room = room == 0 ? 256 : 2 * room;
            space->candidate = xrealloc(space->candidate, room, sizeof(*space->candidate));
        }
        int rc =
            next(reader, &space_candidate_message, &space->candidate[space->head.candidates], err);
        if (rc != 0) {
            return rc;
        }
        space->head.candidates++;
    }
    if (reader->at != reader->end) {
        return err_set(err, ERR_CORRUPT, "%s: something follows the last candidate", reader->path);
    }
    return 0;
}

static int read_space(struct space *space, struct reader *reader, struct err *err)
{
    int rc = next(reader, &space_head_message, &space->head, err);
    if (rc != 0) {
        space->head = (struct space_head){0};
        return rc;
    }
    if (space->head.format != SPACE_FORMAT) {
        return err_set(err, ERR_VERSION, "%s: format %llu is not known to this release, %s",
                       reader->path, (unsigned long long)space->head.format,
                       "which reads format 1");
    }
    rc = check_count(space, reader->path, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_candidates(space, reader, err);
    if (rc != 0) {
        return rc;
    }
    return space_check(space, reader->path, err);
}

int space_parse(struct space *ret, const void *data, size_t len, const char *path, struct err *err)
{
    if (len < MAGIC_LEN || memcmp(data, MAGIC, MAGIC_LEN) != 0) {
        return err_set(err, ERR_CORRUPT,
                       "%s: no space; `kcast export RUN --format space` writes one", path);
    }
    struct reader reader = {.at = (const unsigned char *)data + MAGIC_LEN,
                            .end = (const unsigned char *)data + len,
                            .path = path};
    struct space space = {.candidate = NULL};
    int rc = read_space(&space, &reader, err);
    if (rc != 0) {
        space_release(&space);
        return rc;
    }
    *ret = space;
    return 0;
}

int space_read(struct space *ret, const char *path, struct err *err)
{
    struct bytes packed;
    int rc = file_read(&packed, path, SPACE_FILE_MAX, err);

    if (rc != 0) {
        return rc;
    }
    struct strbuf data;
    strbuf_init(&data, SPACE_BYTES_MAX);
    rc = gzip_unpack(&data, packed.data, packed.len);
    if (rc == ERR_LIMIT) {
        rc = err_set(err, rc, "%s: more than %zu MiB unpacked", path, SPACE_BYTES_MAX >> 20);
    } else if (rc != 0) {
        rc = err_set(err, rc, "%s: the file is damaged or no space", path);
    } else {
        rc = space_parse(ret, strbuf_text(&data), data.len, path, err);
    }
    strbuf_release(&data);
    bytes_clear(&packed);
    return rc;
}

// ---- writing ----

static int add(struct strbuf *out, const struct message *message, const void *value,
               struct err *err)
{
    struct strbuf packed = STRBUF_INIT;
    int rc = message_pack(message, value, &packed, err);
    unsigned char head[HEAD_LEN] = {(unsigned char)packed.len, (unsigned char)(packed.len >> 8),
                                    (unsigned char)(packed.len >> 16),
                                    (unsigned char)(packed.len >> 24)};

    if (rc == 0) {
        strbuf_add(out, head, sizeof(head));
        strbuf_add(out, packed.data, packed.len);
    }
    strbuf_release(&packed);
    return rc;
}

int space_pack(const struct space *space, const char *path, struct strbuf *out, struct err *err)
{
    int rc = space_check(space, path, err);

    if (rc != 0) {
        return rc;
    }
    strbuf_add(out, MAGIC, MAGIC_LEN);
    rc = add(out, &space_head_message, &space->head, err);
    for (uint64_t i = 0; i < space->head.candidates && rc == 0; i++) {
        rc = add(out, &space_candidate_message, &space->candidate[i], err);
    }
    if (rc != 0) {
        return err_wrap(err, "%s", path);
    }
    return !out->truncated
               ? 0
               : err_set(err, ERR_LIMIT, "%s: a space has at most %zu MiB", path, out->max >> 20);
}

int space_write(const struct space *space, const char *path, struct err *err)
{
    struct strbuf data, packed;

    strbuf_init(&data, SPACE_BYTES_MAX);
    strbuf_init(&packed, SPACE_FILE_MAX);
    int rc = space_pack(space, path, &data, err);
    if (rc == 0) {
        gzip_pack(&packed, data.data, data.len);
        if (packed.truncated) {
            rc = err_set(err, ERR_LIMIT, "%s: a packed space has at most %zu MiB", path,
                         SPACE_FILE_MAX >> 20);
        }
    }
    if (rc == 0) {
        rc = file_write_named(path, packed.data, packed.len, true, err);
    }
    strbuf_release(&data);
    strbuf_release(&packed);
    return rc;
}

// ---- file names ----

bool space_is(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return false;
    }
    unsigned char head[GZIP_MAGIC_LEN];
    ssize_t got = read(fd, head, sizeof(head));
    (void)close(fd);
    return got > 0 && gzip_is(head, (size_t)got);
}

char *space_path_of(const char *path)
{
    const char *name = file_base_name(path), *dot = strrchr(name, '.');
    size_t len = dot && dot != name ? (size_t)(dot - path) : strlen(path);

    return xasprintf("%.*s" SPACE_SUFFIX, (int)len, path);
}

// ---- the space in memory ----

void space_release(struct space *space)
{
    for (uint64_t i = 0; i < space->head.candidates && space->candidate; i++) {
        message_clear(&space_candidate_message, &space->candidate[i]);
    }
    free(space->candidate);
    message_clear(&space_head_message, &space->head);
    space->candidate = NULL;
}

double space_log2(const struct space_candidate *candidate)
{
    const struct result *result = candidate->record ? candidate->record : candidate->result;

    // The times of an unsealed one are of another clock than those of the others.
    return result && !result->unsealed && verdict_is_ratio(result->verdict) && result->speedup
               ? result->speedup->log2
               : NAN;
}

double space_best_log2(const struct space *space)
{
    double best = NAN;

    for (uint64_t i = 0; i < space->head.candidates; i++) {
        best = fmax(best, space_log2(&space->candidate[i]));
    }
    return best;
}

void space_add_cost_warning(const struct space *space, const char *name, struct strbuf *out)
{
    if (space->head.launch_costs > 0) {
        strbuf_addf(
            out,
            "%s: for %llu of %llu candidates a search is charged one kernel launch, because "
            "nothing else was recorded; measuring them takes far longer, so do not compare "
            "searches of this space by device time",
            name, (unsigned long long)space->head.launch_costs,
            (unsigned long long)space->head.candidates);
    }
}
