#include "replay/sequences.h"

#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/strbuf.h"
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct entry {
    char *key; // "VARIANT SPACE SEED"
    struct sequence sequence;
    UT_hash_handle hh;
};

struct sequences {
    struct bytes text; // of the file; names of variants and spaces point into it
    struct entry *by_key;
    const char **variant;
    size_t variants;
};

static char *key_of(const char *variant, const char *space, uint64_t seed)
{
    return xasprintf("%s %s %llu", variant, space, (unsigned long long)seed);
}

static void free_entry(struct entry *entry)
{
    if (entry) {
        free(entry->sequence.candidate);
        free(entry->key);
        free(entry);
    }
}

void sequences_free(struct sequences *sequences)
{
    struct entry *entry, *next;

    if (sequences) {
        HASH_ITER (hh, sequences->by_key, entry, next) {
            HASH_DEL(sequences->by_key, entry);
            free_entry(entry);
        }
        free(sequences->variant);
        bytes_clear(&sequences->text);
        free(sequences);
    }
}

// Cuts the next word off the line and returns it; "" at the end. Advances *line.
static char *next_word(char **line)
{
    char *word = *line + strspn(*line, " "), *end = word + strcspn(word, " ");

    *line = *end != '\0' ? end + 1 : end;
    *end = '\0';
    return word;
}

static int read_numbers(struct sequence *sequence, char *line, struct err *err)
{
    size_t room = 0;
    int rc = 0;

    for (char *word = next_word(&line); *word != '\0' && rc == 0; word = next_word(&line)) {
        if (sequence->count == room) {
            room = 2 * room + 64;
            sequence->candidate = xrealloc(sequence->candidate, room, sizeof(*sequence->candidate));
        }
        rc = parse_u64(&sequence->candidate[sequence->count++], word, 1, UINT64_MAX / 2,
                       "the number of a candidate", err);
    }
    return rc;
}

static void note_variant(struct sequences *sequences, const char *variant)
{
    for (size_t i = 0; i < sequences->variants; i++) {
        if (strcmp(sequences->variant[i], variant) == 0) {
            return;
        }
    }
    sequences->variant =
        xrealloc(sequences->variant, sequences->variants + 1, sizeof(*sequences->variant));
    sequences->variant[sequences->variants++] = variant;
}

static int read_line(struct sequences *sequences, char *line, struct err *err)
{
    struct entry *entry = xcalloc(1, sizeof(*entry));
    struct sequence *sequence = &entry->sequence;

    sequence->variant = next_word(&line);
    sequence->space = next_word(&line);
    int rc = parse_u64(&sequence->seed, next_word(&line), 0, UINT64_MAX / 2, "the seed", err);
    if (rc != 0) {
        goto out;
    }
    if (strlen(sequence->variant) > SEQUENCES_VARIANT_MAX) {
        rc = err_set(err, ERR_INVALID, "the name of a variant has more than %d bytes",
                     SEQUENCES_VARIANT_MAX);
        goto out;
    }
    rc = read_numbers(sequence, line, err);
    if (rc != 0) {
        goto out;
    }
    entry->key = key_of(sequence->variant, sequence->space, sequence->seed);
    struct entry *other = NULL;
    HASH_FIND_STR(sequences->by_key, entry->key, other);
    if (other) {
        rc = err_set(err, ERR_INVALID, "an earlier line is of the same search: %.200s", entry->key);
        goto out;
    }
    note_variant(sequences, sequence->variant);
    HASH_ADD_KEYPTR(hh, sequences->by_key, entry->key, strlen(entry->key), entry);
    entry = NULL;
out:
    free_entry(entry);
    return rc;
}

int sequences_read(struct sequences **ret, const char *path, struct err *err)
{
    struct sequences *sequences = xcalloc(1, sizeof(*sequences));
    int rc = file_read(&sequences->text, path, SEQUENCES_FILE_MAX, err);
    char *next = rc == 0 ? (char *)sequences->text.data : NULL;
    const char *file_end = rc == 0 ? next + sequences->text.len : NULL;

    for (unsigned long line = 1; rc == 0 && next < file_end; line++) {
        char *start = next, *end = strchrnul(next, '\n');
        struct err why = ERR_INIT;

        next = end + 1;
        if (*end == '\0' && end < file_end) {
            rc = err_set(err, ERR_INVALID, "%s:%lu: holds a byte 0", path, line);
            break;
        }
        *end = '\0';
        if (*start != '\0' && read_line(sequences, start, &why) != 0) {
            rc = err_set(err, ERR_INVALID, "%s:%lu: %s", path, line, why.text);
        }
    }
    if (rc != 0) {
        sequences_free(sequences);
        return rc;
    }
    *ret = sequences;
    return 0;
}

const char *sequences_variant(const struct sequences *sequences, size_t i)
{
    return i < sequences->variants ? sequences->variant[i] : NULL;
}

const struct sequence *sequences_find(const struct sequences *sequences, const char *variant,
                                      const char *space, uint64_t seed)
{
    struct entry *entry = NULL;
    char *key = key_of(variant, space, seed);

    HASH_FIND_STR(sequences->by_key, key, entry);
    free(key);
    return entry ? &entry->sequence : NULL;
}
