#include "client/space.h"
#include "common/file.h"
#include "common/mem.h"
#include "contract/verdict.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define MAGIC "KCSPACE1"
#define MAGIC_LEN 8
#define HEAD_LEN 4 // of a frame
#define CHUNK ((size_t)1 << 16)
#define GZIP_BITS (15 + 16) // zlib: the largest window, in a gzip wrapper

// ---- gzip ----

static int unpack(const struct bytes *packed, struct strbuf *out, const char *path, struct err *err)
{
    unsigned char *chunk = xmalloc(CHUNK);
    z_stream stream = {.next_in = packed->data, .avail_in = (uInt)packed->len};
    int outcome = inflateInit2(&stream, GZIP_BITS);

    while (outcome == Z_OK && !out->truncated) {
        stream.next_out = chunk;
        stream.avail_out = (uInt)CHUNK;
        outcome = inflate(&stream, Z_NO_FLUSH);
        strbuf_add(out, chunk, CHUNK - stream.avail_out);
    }
    (void)inflateEnd(&stream);
    free(chunk);
    if (out->truncated) {
        return err_set(err, ERR_LIMIT, "%s: more than %zu MiB unpacked", path,
                       SPACE_BYTES_MAX >> 20);
    }
    if (outcome != Z_STREAM_END || stream.avail_in > 0) {
        return err_set(err, ERR_CORRUPT, "%s: the file is damaged or no space", path);
    }
    return 0;
}

static void pack(const struct strbuf *data, struct strbuf *out)
{
    unsigned char *chunk = xmalloc(CHUNK);
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)data->data,
                       .avail_in = (uInt)data->len};
    int outcome =
        deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_BITS, 9, Z_DEFAULT_STRATEGY);

    while (outcome == Z_OK) {
        stream.next_out = chunk;
        stream.avail_out = (uInt)CHUNK;
        outcome = deflate(&stream, Z_FINISH);
        strbuf_add(out, chunk, CHUNK - stream.avail_out);
    }
    (void)deflateEnd(&stream);
    free(chunk);
}

// ---- reading ----

struct reader {
    const unsigned char *at, *end;
    const char *path;
};

static int next(struct reader *reader, const struct message *message, void *ret, struct err *err)
{
    const unsigned char *head = reader->at;
    size_t left = (size_t)(reader->end - reader->at), len;
    int status;

    if (left < HEAD_LEN) {
        return err_set(err, ERR_CORRUPT, "%s: the file ends too early", reader->path);
    }
    len = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (len > left - HEAD_LEN) {
        return err_set(err, ERR_CORRUPT, "%s: the file ends too early", reader->path);
    }
    status = message_read(message, ret, head + HEAD_LEN, len, err);
    if (status != 0) {
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

// Of the candidates that have parameters, which may be none.
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

static int check_names(const struct space *space, const char *path, struct err *err)
{
    size_t count = (size_t)space->head.candidates;
    char **name = xcalloc(count, sizeof(*name));
    int status = 0;

    for (size_t i = 0; i < count; i++) {
        name[i] = space->candidate[i].name;
    }
    qsort(name, count, sizeof(*name), by_name);
    for (size_t i = 1; i < count && status == 0; i++) {
        if (strcmp(name[i - 1], name[i]) == 0) {
            status = err_set(err, ERR_CORRUPT, "%s: two candidates are called \"%.100s\"", path,
                             name[i]);
        }
    }
    free(name);
    return status;
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
    const struct space_candidate *first = first_with_params(space);

    if (check_count(space, path, err) != 0) {
        return ERR_CORRUPT;
    }
    for (size_t i = 0; i < space->head.candidates; i++) {
        const struct space_candidate *c = &space->candidate[i];

        if (c->params_count > 0 && !same_params(c, first)) {
            return err_set(err, ERR_CORRUPT,
                           "%s: candidate \"%.100s\" has other parameters than \"%.100s\"", path,
                           c->name, first->name);
        }
        if (c->compiled == NULL && c->result == NULL) {
            return err_set(err, ERR_CORRUPT, "%s: candidate \"%.100s\" has no outcome", path,
                           c->name);
        }
    }
    return check_names(space, path, err);
}

int space_parse(struct space *ret, const void *data, size_t len, const char *path, struct err *err)
{
    struct reader reader = {.at = data, .end = (const unsigned char *)data + len, .path = path};
    struct space space = {.candidate = NULL};
    size_t count = 0, room = 0;
    int status;

    if (len < MAGIC_LEN || memcmp(data, MAGIC, MAGIC_LEN) != 0) {
        return err_set(err, ERR_CORRUPT,
                       "%s: no space; `kcast export RUN --format space` writes one", path);
    }
    reader.at += MAGIC_LEN;
    status = next(&reader, &space_head_message, &space.head, err);
    if (status != 0) {
        return status;
    }
    if (space.head.format != SPACE_FORMAT) {
        status = err_set(err, ERR_VERSION, "%s: format %llu is not known to this release, %s", path,
                         (unsigned long long)space.head.format, "which reads format 1");
    } else {
        status = check_count(&space, path, err);
    }
    while (status == 0 && count < space.head.candidates) {
        if (count == room) {
            room = room == 0 ? 256 : 2 * room;
            space.candidate = xrealloc(space.candidate, room, sizeof(*space.candidate));
        }
        status = next(&reader, &space_candidate_message, &space.candidate[count], err);
        count += status == 0;
    }
    if (status == 0 && reader.at != reader.end) {
        status = err_set(err, ERR_CORRUPT, "%s: something follows the last candidate", path);
    }
    if (status == 0) {
        status = space_check(&space, path, err);
    }
    if (status != 0) {
        space.head.candidates = count;
        space_release(&space);
        return status;
    }
    *ret = space;
    return 0;
}

int space_read(struct space *ret, const char *path, struct err *err)
{
    struct strbuf data;
    struct bytes packed;
    int status = file_read(&packed, path, SPACE_FILE_MAX, err);

    if (status != 0) {
        return status;
    }
    strbuf_init(&data, SPACE_BYTES_MAX);
    status = unpack(&packed, &data, path, err);
    if (status == 0) {
        status = space_parse(ret, strbuf_text(&data), data.len, path, err);
    }
    strbuf_release(&data);
    bytes_clear(&packed);
    return status;
}

// ---- writing ----

static int add(struct strbuf *out, const struct message *message, const void *value,
               struct err *err)
{
    struct strbuf packed = STRBUF_INIT;
    int status = message_pack(message, value, &packed, err);
    unsigned char head[HEAD_LEN] = {(unsigned char)packed.len, (unsigned char)(packed.len >> 8),
                                    (unsigned char)(packed.len >> 16),
                                    (unsigned char)(packed.len >> 24)};

    if (status == 0) {
        strbuf_add(out, head, sizeof(head));
        strbuf_add(out, packed.data, packed.len);
    }
    strbuf_release(&packed);
    return status;
}

int space_pack(const struct space *space, const char *path, struct strbuf *out, struct err *err)
{
    int status = space_check(space, path, err);

    if (status != 0) {
        return status;
    }
    strbuf_add(out, MAGIC, MAGIC_LEN);
    status = add(out, &space_head_message, &space->head, err);
    for (uint64_t i = 0; i < space->head.candidates && status == 0; i++) {
        status = add(out, &space_candidate_message, &space->candidate[i], err);
    }
    if (status != 0) {
        return err_wrap(err, "%s", path);
    }
    return !out->truncated
               ? 0
               : err_set(err, ERR_LIMIT, "%s: a space has at most %zu MiB", path, out->max >> 20);
}

int space_write(const struct space *space, const char *path, struct err *err)
{
    struct strbuf data, packed;
    int status;

    strbuf_init(&data, SPACE_BYTES_MAX);
    strbuf_init(&packed, SPACE_FILE_MAX);
    status = space_pack(space, path, &data, err);
    if (status == 0) {
        pack(&data, &packed);
        if (packed.truncated) {
            status = err_set(err, ERR_LIMIT, "%s: a packed space has at most %zu MiB", path,
                             SPACE_FILE_MAX >> 20);
        }
    }
    if (status == 0) {
        status = file_replace(path, packed.data, packed.len, true, err);
    }
    strbuf_release(&data);
    strbuf_release(&packed);
    return status;
}

// ---- names ----

bool space_is(const char *path)
{
    unsigned char head[2] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return false;
    }
    ssize_t got = read(fd, head, sizeof(head));
    (void)close(fd);
    return got == (ssize_t)sizeof(head) && head[0] == 0x1f && head[1] == 0x8b;
}

char *space_path_of(const char *path)
{
    const char *name = file_base_name(path), *dot = strrchr(name, '.');
    size_t len = dot != NULL && dot != name ? (size_t)(dot - path) : strlen(path);

    return xasprintf("%.*s" SPACE_SUFFIX, (int)len, path);
}

void space_release(struct space *space)
{
    for (uint64_t i = 0; i < space->head.candidates && space->candidate != NULL; i++) {
        message_clear(&space_candidate_message, &space->candidate[i]);
    }
    free(space->candidate);
    message_clear(&space_head_message, &space->head);
    space->candidate = NULL;
}

// ---- numbers ----

double space_log2(const struct space_candidate *candidate)
{
    const struct result *result = candidate->record != NULL ? candidate->record : candidate->result;

    return result != NULL && verdict_is_ratio(result->verdict) && result->speedup != NULL
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
