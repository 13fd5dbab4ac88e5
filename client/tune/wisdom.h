// The wisdom file: the JSON file that `kcast tune` writes and other programs read. It says which
// configuration of a kernel was found best for which shapes on which class of devices; docs/tune.md
// has the format. "Wisdom" is FFTW's word for such a file. This module reads the file strictly,
// finds an entry, and adds entries without losing others. Called by tune.c, `kcast tune` and `kcast
// wisdom`. It knows nothing of searches.
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
#define WISDOM_DEFAULT "kernelcast-wisdom.json" // the default path, in the current folder
#define WISDOM_BYTES_MAX ((size_t)64 << 20)
#define WISDOM_ENTRY_MAX 4096
#define WISDOM_CASE_MAX 32
#define WISDOM_PARAM_MAX 32

// A shape: named numbers. An integer in the file is a parameter of type int, a real number is a
// scalar.
struct wisdom_case {
    size_t count;
    struct wisdom_value {
        const char *name; // belongs to the entry's object
        bool integer;
        int64_t whole; // the value, if it is an integer
        double real;   // the value in any case
    } param[WISDOM_PARAM_MAX];
};

struct wisdom_entry {
    json_t *object;               // as in the file, with unknown keys; owned; owns the texts below
    const char *problem;          // name
    const char *problem_digest;   // of problem.json, as 64 hex digits
    const char *reference_digest; // as 64 hex digits
    const char *baseline_digest;  // as 64 hex digits
    const char *kernel;           // the template's file name
    const char *kernel_digest;    // as 64 hex digits
    const char *device_class;
    const char *toolchain;     // "" when it is unknown
    const char *tuned_at;      // such as "2026-11-21T19:44:39Z"; these texts sort like dates
    double log2;               // log2 of the speedup; 0 for the baseline
    bool configured;           // false: nothing was faster than the baseline
    char *define;              // such as "-DMB=32 -DNB=64"; NULL unless configured; owned
    struct wisdom_case *shape; // the shapes that the configuration is for; owned
    size_t shape_count;        // at least 1
};

// Owns everything in it.
struct wisdom {
    struct wisdom_entry **entry; // no two of them have the same key (wisdom_same)
    size_t count;
};

// Parses the text of a wisdom file. ERR_CORRUPT when it is none, ERR_VERSION when it has another
// version. The sentence begins with path and names the place, such as "$.entries[3].kernel". On
// failure *ret is empty.
MUST_CHECK int wisdom_parse(struct wisdom *ret, const char *text, size_t len, const char *path,
                            struct err *err);
// Reads and parses a file. A file that does not exist counts as empty when it may be missing, and
// is ERR_NOT_FOUND otherwise.
MUST_CHECK int wisdom_read(struct wisdom *ret, const char *path, bool may_be_missing,
                           struct err *err);
void wisdom_release(struct wisdom *wisdom);
// Appends the text of the file.
void wisdom_text(const struct wisdom *wisdom, struct strbuf *out);

// Makes an entry of a JSON object and keeps a reference to the object. ERR_CORRUPT as above; `what`
// names the object in the sentence.
MUST_CHECK int wisdom_entry_read(struct wisdom_entry **ret, json_t *object, const char *path,
                                 const char *what, struct err *err);
void wisdom_entry_free(struct wisdom_entry *entry); // NULL is fine

// Whether two entries have the same key, so that one replaces the other: the problem with its
// digests, the kernel's digest, the device class and the set of shapes.
bool wisdom_same(const struct wisdom_entry *a, const struct wisdom_entry *b);
// The entry with the same key as this one, which stays the wisdom's. NULL when there is none.
const struct wisdom_entry *wisdom_find(const struct wisdom *wisdom,
                                       const struct wisdom_entry *like);

// Adds the entry, or replaces the one with the same key. If the old one is faster and of the same
// toolchain, it stays, *ret_kept is true and the new one is freed. Takes ownership of entry.
void wisdom_put_take(struct wisdom *wisdom, struct wisdom_entry *entry, bool *ret_kept);

// Locks PATH.lock, reads the file, adds the entry as wisdom_put_take does, and replaces the file.
// It blocks while another process holds the lock, which is for one such update. Other entries stay
// as they are. On failure the file is as before. Takes ownership of entry in any case.
MUST_CHECK int wisdom_merge_take(const char *path, struct wisdom_entry *entry, bool *ret_kept,
                                 struct err *err);
// Fails where wisdom_merge_take would fail: the file is damaged, or its folder cannot be written.
MUST_CHECK int wisdom_check(const char *path, struct err *err);

#endif
