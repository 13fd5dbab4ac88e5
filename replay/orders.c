#include "replay/orders.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/strbuf.h"
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct entry {
    char *key; // "ARM SPACE SEED"
    struct order order;
    UT_hash_handle hh;
};

struct orders {
    struct bytes text; // variants and spaces point into it
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
    free(entry->order.candidate);
    free(entry->key);
    free(entry);
}

void orders_free(struct orders *orders)
{
    struct entry *entry, *next;

    if (orders) {
        HASH_ITER (hh, orders->by_key, entry, next) {
            HASH_DEL(orders->by_key, entry);
            free_entry(entry);
        }
        free(orders->variant);
        bytes_clear(&orders->text);
        free(orders);
    }
}

// The next word of a line; "" at its end. Advances *line.
static char *next_word(char **line)
{
    char *word = *line + strspn(*line, " "), *end = word + strcspn(word, " ");

    *line = *end != '\0' ? end + 1 : end;
    *end = '\0';
    return word;
}

static int read_numbers(struct order *order, char *line, struct err *err)
{
    size_t room = 0;
    int rc = 0;

    for (char *word = next_word(&line); *word != '\0' && rc == 0; word = next_word(&line)) {
        if (order->count == room) {
            room = 2 * room + 64;
            order->candidate = xrealloc(order->candidate, room, sizeof(*order->candidate));
        }
        rc = parse_u64(&order->candidate[order->count++], word, 1, UINT64_MAX / 2,
                       "the number of a candidate", err);
    }
    return rc;
}

static void note_variant(struct orders *orders, const char *variant)
{
    for (size_t i = 0; i < orders->variants; i++) {
        if (strcmp(orders->variant[i], variant) == 0) {
            return;
        }
    }
    orders->variant = xrealloc(orders->variant, orders->variants + 1, sizeof(*orders->variant));
    orders->variant[orders->variants++] = variant;
}

static int read_line(struct orders *orders, char *line, struct err *err)
{
    struct entry *entry = xcalloc(1, sizeof(*entry)), *other = NULL;
    struct order *order = &entry->order;

    order->variant = next_word(&line);
    order->space = next_word(&line);
    int rc = parse_u64(&order->seed, next_word(&line), 0, UINT64_MAX / 2, "the seed", err);
    if (rc == 0 && strlen(order->variant) > ORDERS_VARIANT_MAX) {
        rc = err_set(err, ERR_INVALID, "the name of an arm has more than %d bytes",
                     ORDERS_VARIANT_MAX);
    }
    if (rc == 0) {
        rc = read_numbers(order, line, err);
    }
    entry->key = key_of(order->variant, order->space, order->seed);
    HASH_FIND_STR(orders->by_key, entry->key, other);
    if (rc == 0 && other) {
        rc = err_set(err, ERR_INVALID, "an earlier line is of the same search: %.200s", entry->key);
    }
    if (rc != 0) {
        free_entry(entry);
        return rc;
    }
    note_variant(orders, order->variant);
    HASH_ADD_KEYPTR(hh, orders->by_key, entry->key, strlen(entry->key), entry);
    return 0;
}

int orders_read(struct orders **ret, const char *path, struct err *err)
{
    struct orders *orders = xcalloc(1, sizeof(*orders));
    int rc = file_read(&orders->text, path, ORDERS_FILE_MAX, err);
    char *next = rc == 0 ? (char *)orders->text.data : NULL;

    for (unsigned long line = 1; rc == 0 && *next != '\0'; line++) {
        char *start = next, *end = strchrnul(next, '\n');

        next = *end != '\0' ? end + 1 : end;
        *end = '\0';
        if (*start != '\0' && read_line(orders, start, err) != 0) {
            rc = err->code = ERR_INVALID;
            err_wrap(err, "%s:%lu", path, line);
        }
    }
    if (rc != 0) {
        orders_free(orders);
        return rc;
    }
    *ret = orders;
    return 0;
}

const char *orders_arm(const struct orders *orders, size_t i)
{
    return i < orders->variants ? orders->variant[i] : NULL;
}

const struct order *orders_find(const struct orders *orders, const char *variant, const char *space,
                                uint64_t seed)
{
    struct entry *entry = NULL;
    char *key = key_of(variant, space, seed);

    HASH_FIND_STR(orders->by_key, key, entry);
    free(key);
    return entry ? &entry->order : NULL;
}
