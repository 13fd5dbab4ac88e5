#include "common/row_digest.h"
#include "common/digest.h"
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>

// Integers and floating-point numbers count with their 64 bits, in the order of a little-endian
// machine, because files move between machines.
static void add_bits(struct digest_state *state, unsigned char type, uint64_t bits)
{
    unsigned char piece[9] = {type};

    for (size_t i = 0; i < 8; i++) {
        piece[i + 1] = (unsigned char)(bits >> (8 * i));
    }
    digest_add(state, piece, sizeof(piece));
}

static void add_value(struct digest_state *state, sqlite3_value *value)
{
    unsigned char type = (unsigned char)sqlite3_value_type(value);
    double number;
    uint64_t bits;

    switch (type) {
    case SQLITE_INTEGER:
        add_bits(state, type, (uint64_t)sqlite3_value_int64(value));
        return;
    case SQLITE_FLOAT:
        number = sqlite3_value_double(value);
        number = number == 0 ? 0 : number; // SQLite does not keep the sign of a zero
        memcpy(&bits, &number, sizeof(bits));
        add_bits(state, type, bits);
        return;
    case SQLITE_NULL:
        digest_add(state, &type, 1);
        return;
    default: { // text or blob; the pointer is asked for before the length
        const void *data = sqlite3_value_blob(value);

        digest_add(state, &type, 1);
        digest_add(state, data, (size_t)sqlite3_value_bytes(value));
    }
    }
}

static void row_digest(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct digest_state *state = digest_begin();

    for (int i = 0; i < count; i++) {
        add_value(state, values[i]);
    }
    struct digest digest = digest_end(state);
    sqlite3_result_blob(context, digest.byte, DIGEST_LEN, SQLITE_TRANSIENT);
}

int row_digest_register(struct sqlite3 *db, struct err *err)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    int rc = sqlite3_create_function(db, "row_digest", -1, flags, NULL, row_digest, NULL, NULL);

    return rc == SQLITE_OK ? 0 : err_set(err, ERR_SYSTEM, "no memory for an SQL function");
}
