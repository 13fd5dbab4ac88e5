// The cache as an SQLite file without synchronous writes.
#include "worker/llm/answer_cache.h"

#include "common/log.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define APPLICATION_ID "0x6b636163"  // "kcac"
#define ANSWER_MAX ((size_t)4 << 20) // bytes of one packed answer

struct answer_cache {
    sqlite3 *db;
    sqlite3_stmt *find, *add;
};

static bool execute(struct answer_cache *cache, const char *sql)
{
    return sqlite3_exec(cache->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// Closes the file. Half-opened ones too.
static void shut(struct answer_cache *cache)
{
    sqlite3_finalize(cache->find);
    sqlite3_finalize(cache->add);
    sqlite3_close(cache->db);
    *cache = (struct answer_cache){.db = NULL};
}

// Opens or creates the file and deletes the oldest entries beyond the maximum.
static bool try_open(struct answer_cache *cache, const char *path)
{
    char trim[160];

    (void)snprintf(trim, sizeof(trim),
                   "DELETE FROM answer WHERE id <="
                   " (SELECT id FROM answer ORDER BY id DESC LIMIT 1 OFFSET %d)",
                   ANSWER_CACHE_ENTRIES_MAX);
    return sqlite3_open_v2(path, &cache->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ==
               SQLITE_OK &&
           execute(cache, "PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL;"
                          "PRAGMA synchronous = OFF; PRAGMA application_id = " APPLICATION_ID ";"
                          "CREATE TABLE IF NOT EXISTS answer (id INTEGER PRIMARY KEY,"
                          " question BLOB NOT NULL UNIQUE, body BLOB NOT NULL) STRICT") &&
           execute(cache, trim) &&
           sqlite3_prepare_v2(cache->db, "SELECT body FROM answer WHERE question = ?1", -1,
                              &cache->find, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(cache->db,
                              "INSERT INTO answer (question, body) VALUES (?1, ?2)"
                              " ON CONFLICT DO NOTHING",
                              -1, &cache->add, NULL) == SQLITE_OK;
}

static void remove_files(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char *name = xasprintf("%s%s", path, ends[i]);

        (void)unlink(name);
        free(name);
    }
}

int answer_cache_open(struct answer_cache **ret, const char *path, struct err *err)
{
    struct answer_cache *cache = xcalloc(1, sizeof(*cache));
    bool open = try_open(cache, path);

    if (!open) {
        log_event(LOG_WARNING, "cache-made-anew file=%s reason=\"%s\"", path,
                  sqlite3_errmsg(cache->db));
        shut(cache);
        remove_files(path);
        open = try_open(cache, path);
    }
    if (!open) {
        (void)err_set(err, ERR_SYSTEM, "%s cannot be made: %s", path, sqlite3_errmsg(cache->db));
        answer_cache_close(cache);
        return ERR_SYSTEM;
    }
    *ret = cache;
    return 0;
}

void answer_cache_close(struct answer_cache *cache)
{
    if (cache) {
        shut(cache);
        free(cache);
    }
}

bool answer_cache_find(struct answer_cache *cache, const struct digest *question,
                       const struct message *message, void *ret)
{
    sqlite3_bind_blob(cache->find, 1, question->byte, DIGEST_LEN, SQLITE_STATIC);
    struct err err = ERR_INIT;
    bool found = false;
    if (sqlite3_step(cache->find) == SQLITE_ROW) {
        found = message_read(message, ret, sqlite3_column_blob(cache->find, 0),
                             (size_t)sqlite3_column_bytes(cache->find, 0), &err) == 0;
    }
    sqlite3_reset(cache->find);
    return found;
}

void answer_cache_add(struct answer_cache *cache, const struct digest *question,
                      const struct message *message, const void *answer)
{
    struct strbuf body;

    strbuf_init(&body, ANSWER_MAX);
    struct err err = ERR_INIT;
    if (message_pack(message, answer, &body, &err) == 0 && !body.truncated) {
        sqlite3_bind_blob(cache->add, 1, question->byte, DIGEST_LEN, SQLITE_STATIC);
        sqlite3_bind_blob64(cache->add, 2, body.data, body.len, SQLITE_STATIC);
        (void)sqlite3_step(cache->add); // a full disk only means to pay again
        sqlite3_reset(cache->add);
        sqlite3_clear_bindings(cache->add);
    }
    strbuf_release(&body);
}
