// The wisdom file: which configuration of a kernel was found best for which shapes on which class
// of devices, as JSON that other programs read (docs/tune.md has the format). Reads it strictly,
// finds an entry, adds entries without losing those of others. Knows nothing of searches.
#ifndef CLIENT_TUNE_WISDOM_H
#define CLIENT_TUNE_WISDOM_H

#include "common/err.h"
#include "common/strbuf.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WISDOM_FORMAT "kernelcast-wisdom"
#define WISDOM_VERSION 1
#define WISDOM_DEFAULT "kernelcast-wisdom.json" // in the current folder
#define WISDOM_BYTES_MAX ((size_t)64 << 20)
#define WISDOM_ENTRY_MAX 4096
#define WISDOM_CASE_MAX 32
#define WISDOM_PARAM_MAX 32

// A shape: named numbers. An integer of the file is an int parameter, a real one a scalar.
struct wisdom_case {
    size_t count;
    struct wisdom_value {
        const char *name; // the entry's object's
        bool integer;
        int64_t whole; // of an integer
        double real;   // of both
    } param[WISDOM_PARAM_MAX];
};

struct wisdom_entry {
    json_t *object;             // as in the file, unknown keys too; owned, owns the texts
    const char *problem;        // name
    const char *problem_digest; // of problem.json, 64 hex digits, like those that follow
    const char *reference_digest;
    const char *baseline_digest;
    const char *kernel; // the template's file name
    const char *kernel_digest;
    const char *device_class;
    const char *toolchain;     // "" when it is unknown
    const char *tuned_at;      // "2026-11-21T19:44:39Z": texts sort like dates
    double log2;               // of the speedup; 0 for the baseline
    bool configured;           // false: nothing was faster than the baseline
    char *define;              // "-DMB=32 -DNB=64"; NULL unless configured; owned
    struct wisdom_case *shape; // that the configuration is for; owned
    size_t shape_count;        // at least 1
};

struct wisdom {
    struct wisdom_entry **entry; // no two are for the same thing (wisdom_same)
    size_t count;
};

// Parses text. ERR_CORRUPT for what is no wisdom file, ERR_VERSION for one of another version; the
// sentence begins with path and names the place ("$.entries[3].kernel"). On failure *ret is empty.
MUST_CHECK int wisdom_parse(struct wisdom *ret, const char *text, size_t len, const char *path,
                            struct err *err);
// From a file; one that does not exist is empty when that is allowed, ERR_NOT_FOUND otherwise.
MUST_CHECK int wisdom_read(struct wisdom *ret, const char *path, bool may_be_missing,
                           struct err *err);
void wisdom_release(struct wisdom *wisdom);
// The file's text.
void wisdom_text(const struct wisdom *wisdom, struct strbuf *out);

// An entry of an object. ERR_CORRUPT as above; what names the object. Keeps a reference to it.
MUST_CHECK int wisdom_entry_read(struct wisdom_entry **ret, json_t *object, const char *path,
                                 const char *what, struct err *err);
void wisdom_entry_free(struct wisdom_entry *entry); // NULL is fine

// Both are for the same problem (all digests), kernel, device class and set of shapes, so that one
// replaces the other.
bool wisdom_same(const struct wisdom_entry *a, const struct wisdom_entry *b);
// The entry for the same thing as this one; NULL without one.
const struct wisdom_entry *wisdom_find(const struct wisdom *wisdom,
                                       const struct wisdom_entry *like);

// Puts an entry in, in the place of the one for the same thing. A faster one of the same toolchain
// stays: *ret_kept is then true and the new one is freed. Takes entry.
void wisdom_put_take(struct wisdom *wisdom, struct wisdom_entry *entry, bool *ret_kept);

// Takes the lock PATH.lock (waits for whoever has it, which is never long), reads the file, puts
// the entry in and replaces the file by a whole one. Other entries stay as they are. On failure the
// file is as before. Takes entry in any case.
MUST_CHECK int wisdom_merge_take(const char *path, struct wisdom_entry *entry, bool *ret_kept,
                                 struct err *err);
// Refuses what wisdom_merge_take would: a damaged file, a folder in which no file can be made.
MUST_CHECK int wisdom_check(const char *path, struct err *err);

#endif
