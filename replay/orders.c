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
    struct bytes text; // arms and spaces point into it
    struct entry *by_key;
    const char **arm;
    size_t arms;
};

static char *key_of(const char *arm, const char *space, uint64_t seed)
{
    return xasprintf("%s %s %llu", arm, space, (unsigned long long)seed);
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

    if (orders != NULL) {
        HASH_ITER (hh, orders->by_key, entry, next) {
            HASH_DEL(orders->by_key, entry);
            free_entry(entry);
        }
        free(orders->arm);
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
    int status = 0;

    for (char *word = next_word(&line); *word != '\0' && status == 0; word = next_word(&line)) {
        if (order->count == room) {
            room = 2 * room + 64;
            order->candidate = xrealloc(order->candidate, room, sizeof(*order->candidate));
        }
        status = parse_u64(&order->candidate[order->count++], word, 1, UINT64_MAX / 2,
                           "the number of a candidate", err);
    }
    return status;
}

static void note_arm(struct orders *orders, const char *arm)
{
    for (size_t i = 0; i < orders->arms; i++) {
        if (strcmp(orders->arm[i], arm) == 0) {
            return;
        }
    }
    orders->arm = xrealloc(orders->arm, orders->arms + 1, sizeof(*orders->arm));
    orders->arm[orders->arms++] = arm;
}

static int read_line(struct orders *orders, char *line, struct err *err)
{
    struct entry *entry = xcalloc(1, sizeof(*entry)), *other = NULL;
    struct order *order = &entry->order;
    int status;

    order->arm = next_word(&line);
    order->space = next_word(&line);
    status = parse_u64(&order->seed, next_word(&line), 0, UINT64_MAX / 2, "the seed", err);
    if (status == 0 && strlen(order->arm) > ORDERS_ARM_MAX) {
        status = err_set(err, ERR_INVALID, "the name of an arm has more than %d bytes",
                         ORDERS_ARM_MAX);
    }
    if (status == 0) {
        status = read_numbers(order, line, err);
    }
    entry->key = key_of(order->arm, order->space, order->seed);
    HASH_FIND_STR(orders->by_key, entry->key, other);
    if (status == 0 && other != NULL) {
        status = err_set(err, ERR_INVALID, "an earlier line is of the same search: %.200s",
                         entry->key);
    }
    if (status != 0) {
        free_entry(entry);
        return status;
    }
    note_arm(orders, order->arm);
    HASH_ADD_KEYPTR(hh, orders->by_key, entry->key, strlen(entry->key), entry);
    return 0;
}

int orders_read(struct orders **ret, const char *path, struct err *err)
{
    struct orders *orders = xcalloc(1, sizeof(*orders));
    int status = file_read(&orders->text, path, ORDERS_FILE_MAX, err);
    char *next = status == 0 ? (char *)orders->text.data : NULL;

    for (unsigned long line = 1; status == 0 && *next != '\0'; line++) {
        char *start = next, *end = strchrnul(next, '\n');

        next = *end != '\0' ? end + 1 : end;
        *end = '\0';
        if (*start != '\0' && read_line(orders, start, err) != 0) {
            status = err->code = ERR_INVALID;
            err_wrap(err, "%s:%lu", path, line);
        }
    }
    if (status != 0) {
        orders_free(orders);
        return status;
    }
    *ret = orders;
    return 0;
}

const char *orders_arm(const struct orders *orders, size_t i)
{
    return i < orders->arms ? orders->arm[i] : NULL;
}

const struct order *orders_find(const struct orders *orders, const char *arm, const char *space,
                                uint64_t seed)
{
    struct entry *entry = NULL;
    char *key = key_of(arm, space, seed);

    HASH_FIND_STR(orders->by_key, key, entry);
    free(key);
    return entry != NULL ? &entry->order : NULL;
}
