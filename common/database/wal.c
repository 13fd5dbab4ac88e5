// Design note. A log has a header with two salts, and frames: a header with the page's number, the
// size of the database when the frame ends a transaction, the log's salts and a checksum, and then
// the page. The checksum of a frame goes on from that of the frame before it. When everything in
// the log has been copied into the database, SQLite begins the log anew with other salts and
// overwrites it from its start. What is left behind the newest frames is then of an older
// generation, as its salts say, and no loss.
//
// A frame of the newest generation that is there as a whole and does not verify is taken for
// damaged. A power failure can leave such frames too, of a transaction that nobody was told of;
// that cannot be told apart, so the sentence says "may".
//
// The salts are not covered by the checksum. A frame with other salts whose checksum goes on from
// the one before it is of the newest generation all the same, and has damaged salts.
//
// Somebody may be writing to the log meanwhile. What looks like damage is therefore looked at again
// and believed when it is still the same.
#include "common/database/wal.h"
#include "common/mem.h"
#include "common/stats.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_LEN 32U
#define FRAME_HEADER_LEN 24U
#define DATABASE_HEADER_LEN 100U
#define PAGE_MAX 65536U
#define MAGIC 0x377f0682U // the last bit says that checksums are of big-endian words
#define VERSION 3007000U
#define SCHEMA_VERSION_AT 40U
#define SCHEMA_CHANGES 1000U // more than there are between a database and its log
#define LOOKS 3              // at a log that somebody is writing to

// Reads len bytes at an offset. Returns how many there are; fewer at the end and on errors.
struct source {
    size_t (*read)(const struct source *source, uint64_t offset, void *to, size_t len);
    int fd;
    const struct wal_bytes *bytes;
};

struct checksum {
    uint32_t a, b;
};

// A look at a log.
struct look {
    struct source log;
    unsigned char header[HEADER_LEN];
    bool has_header;        // it is there and verifies
    uint32_t page_size;     // that it gives, or that of the database
    bool foreign_page;      // the log has a first page that is not this database's
    uint64_t first_ignored; // number of the first frame that does not verify, from 1
    unsigned char database[DATABASE_HEADER_LEN];
    bool has_database;
};

static uint32_t big(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t little(const unsigned char *at)
{
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

// len is a multiple of 8.
static struct checksum checksum_of(struct checksum sum, const unsigned char *data, size_t len,
                                   bool is_big)
{
    for (size_t i = 0; i + 8 <= len; i += 8) {
        sum.a += (is_big ? big(data + i) : little(data + i)) + sum.b;
        sum.b += (is_big ? big(data + i + 4) : little(data + i + 4)) + sum.a;
    }
    return sum;
}

static bool same_checksum(struct checksum sum, const unsigned char *stored)
{
    return sum.a == big(stored) && sum.b == big(stored + 4);
}

static bool is_page_size(uint32_t size)
{
    return size >= 512 && size <= PAGE_MAX && (size & (size - 1)) == 0;
}

static uint32_t database_page_size(const struct look *look)
{
    uint32_t size = (uint32_t)look->database[16] << 8 | look->database[17];

    return size == 1 ? PAGE_MAX : size; // which does not fit into two bytes
}

static bool check_header(struct look *look)
{
    const unsigned char *header = look->header;
    struct checksum sum = checksum_of((struct checksum){0, 0}, header, 24, big(header) & 1);

    return (big(header) & ~1U) == MAGIC && big(header + 4) == VERSION &&
           is_page_size(big(header + 8)) && same_checksum(sum, header + 24);
}

// SQLite counts changes of the schema from the number that wal_identity has set. Databases of
// before, which have none, all have a small one.
static bool same_identity(const unsigned char *page, const unsigned char *own)
{
    uint32_t differ = big(page + SCHEMA_VERSION_AT) - big(own + SCHEMA_VERSION_AT);

    return differ < SCHEMA_CHANGES || -differ < SCHEMA_CHANGES;
}

// The log's copy of the database's first page says whose log it is.
static bool is_foreign_page(const struct look *look, const unsigned char *page)
{
    const unsigned char *own = look->database;

    return look->has_database && (memcmp(page, own, 16) != 0 ||
                                  memcmp(page + 68, own + 68, 4) != 0 || !same_identity(page, own));
}

// Goes through the frames. `frame` has room for the largest one.
static void count_frames(struct look *look, unsigned char *frame, struct wal_report *ret)
{
    const unsigned char *header = look->header;
    bool is_big = big(header) & 1, verified = true;
    size_t len = FRAME_HEADER_LEN + look->page_size;
    struct checksum sum = {big(header + 24), big(header + 28)};
    uint64_t number = 0;

    for (uint64_t at = HEADER_LEN; look->log.read(&look->log, at, frame, len) == len; at += len) {
        struct checksum next = checksum_of(sum, frame, 8, is_big);
        bool current = memcmp(frame + 8, header + 16, 8) == 0; // by its salts
        bool commit = big(frame + 4) != 0;

        number++;
        next = checksum_of(next, frame + FRAME_HEADER_LEN, look->page_size, is_big);
        bool follows = verified && big(frame) != 0 && same_checksum(next, frame + 16);
        if (verified && !(follows && current)) {
            verified = false;
            look->first_ignored = number;
            current = current || follows;
            commit = commit || current; // what it says of that is damaged, too
        }
        sum = next;
        if (current) {
            ret->frames = number;
        }
        if (verified && commit) {
            ret->commits++;
            ret->used = number;
        }
        ret->lost_commits += !verified && current && commit;
        look->foreign_page =
            look->foreign_page ||
            (verified && big(frame) == 1 && is_foreign_page(look, frame + FRAME_HEADER_LEN));
    }
}

// Counts frames of a log whose header is damaged, by the size of the database's pages.
static void count_unreadable(struct look *look, unsigned char *frame, struct wal_report *ret)
{
    size_t len = FRAME_HEADER_LEN + look->page_size;

    for (uint64_t at = HEADER_LEN; look->log.read(&look->log, at, frame, len) == len; at += len) {
        ret->frames++;
        ret->lost_commits += big(frame + 4) != 0;
    }
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void say(struct wal_report *ret, const struct look *look, const char *path)
{
    if (ret->state == WAL_FOREIGN && !look->has_database) {
        (void)snprintf(ret->text, sizeof(ret->text),
                       "%s is empty or not there, but %s-wal has %llu of its transactions; put the "
                       "database back, or move the log away to do without them",
                       path, path, (unsigned long long)(ret->commits + ret->lost_commits));
    } else if (ret->state == WAL_FOREIGN) {
        (void)snprintf(ret->text, sizeof(ret->text),
                       "%s-wal is the write-ahead log of another database; move it away, or put "
                       "the database back that it belongs to",
                       path);
    } else if (!look->has_header) {
        (void)snprintf(ret->text, sizeof(ret->text),
                       "%s-wal: the header of the write-ahead log is damaged, so that its %llu "
                       "frames are ignored; %llu transaction%s may be missing",
                       path, (unsigned long long)ret->frames, (unsigned long long)ret->lost_commits,
                       plural(ret->lost_commits));
    } else {
        (void)snprintf(ret->text, sizeof(ret->text),
                       "%s-wal: frame %llu of the write-ahead log is damaged, so that the frames "
                       "from %llu to %llu are ignored; the last %llu transaction%s may be missing",
                       path, (unsigned long long)look->first_ignored,
                       (unsigned long long)(ret->used + 1), (unsigned long long)ret->frames,
                       (unsigned long long)ret->lost_commits, plural(ret->lost_commits));
    }
}

static void examine(struct look *look, const char *path, struct wal_report *ret)
{
    size_t len = look->log.read(&look->log, 0, look->header, HEADER_LEN);

    *ret = (struct wal_report){.state = WAL_NONE};
    if (len < HEADER_LEN) {
        return; // its first transaction was not finished
    }
    unsigned char *frame = xmalloc(FRAME_HEADER_LEN + PAGE_MAX);
    look->has_header = check_header(look);
    look->page_size = look->has_header ? big(look->header + 8) : database_page_size(look);
    look->first_ignored = 0;
    look->foreign_page = false;
    if (look->has_header) {
        count_frames(look, frame, ret);
    } else if (is_page_size(look->page_size)) {
        count_unreadable(look, frame, ret);
    }
    free(frame);
    bool other_size = look->has_database && look->has_header && ret->used > 0 &&
                      look->page_size != database_page_size(look);
    if (look->foreign_page || other_size || (!look->has_database && ret->used > 0)) {
        ret->state = WAL_FOREIGN;
    } else if (ret->lost_commits > 0) {
        ret->state = WAL_DAMAGED;
    } else if (ret->used > 0) {
        ret->state = WAL_WHOLE;
    }
    if (ret->state == WAL_DAMAGED || ret->state == WAL_FOREIGN) {
        say(ret, look, path);
    }
}

char *wal_identity(void)
{
    return xasprintf("PRAGMA schema_version = %u;", (unsigned)(stats_entropy() >> 33));
}

// ---- in memory ----

static size_t read_bytes(const struct source *source, uint64_t offset, void *to, size_t len)
{
    const struct wal_bytes *bytes = source->bytes;
    size_t left = offset < bytes->log_len ? bytes->log_len - (size_t)offset : 0;

    len = len < left ? len : left;
    if (len > 0) {
        memcpy(to, bytes->log + offset, len);
    }
    return len;
}

void wal_examine_bytes(struct wal_report *ret, const char *path, const struct wal_bytes *bytes)
{
    struct look look = {.log = {.read = read_bytes, .bytes = bytes}};

    look.has_database = bytes->database_len >= DATABASE_HEADER_LEN;
    if (look.has_database) {
        memcpy(look.database, bytes->database, DATABASE_HEADER_LEN);
    }
    examine(&look, path, ret);
}

// ---- in files ----

static size_t read_file(const struct source *source, uint64_t offset, void *to, size_t len)
{
    size_t have = 0;

    while (have < len) {
        ssize_t n = pread(source->fd, (char *)to + have, len - have, (off_t)(offset + have));

        if (n > 0) {
            have += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            return have;
        }
    }
    return have;
}

// Opens a file that may be missing; *ret is -1 then.
static int open_file(int *ret, const char *path, struct err *err)
{
    *ret = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return *ret >= 0 || errno == ENOENT
               ? 0
               : err_set_errno(err, ERR_SYSTEM, errno, "cannot open %s", path);
}

static int read_database(struct look *look, const char *path, struct err *err)
{
    struct source database = {.fd = -1};
    int rc = open_file(&database.fd, path, err);

    if (rc != 0 || database.fd < 0) {
        return rc;
    }
    look->has_database =
        read_file(&database, 0, look->database, DATABASE_HEADER_LEN) == DATABASE_HEADER_LEN;
    (void)close(database.fd);
    return 0;
}

static bool same_report(const struct wal_report *a, const struct wal_report *b)
{
    return a->state == b->state && a->frames == b->frames && a->used == b->used &&
           a->lost_commits == b->lost_commits;
}

int wal_examine(struct wal_report *ret, const char *path, struct err *err)
{
    struct look look = {.log = {.read = read_file, .fd = -1}};
    char *name = xasprintf("%s-wal", path);
    struct stat info;
    int rc = open_file(&look.log.fd, name, err);

    *ret = (struct wal_report){.state = WAL_NONE};
    if (rc != 0 || look.log.fd < 0 || fstat(look.log.fd, &info) != 0 || info.st_size == 0) {
        goto out;
    }
    rc = read_database(&look, path, err);
    if (rc != 0) {
        goto out;
    }
    examine(&look, path, ret);
    for (int looks = 1; looks < LOOKS && ret->text[0]; looks++) {
        struct wal_report before = *ret;

        examine(&look, path, ret);
        if (same_report(ret, &before)) {
            break;
        }
    }
out:
    if (look.log.fd >= 0) {
        (void)close(look.log.fd);
    }
    free(name);
    return rc;
}
