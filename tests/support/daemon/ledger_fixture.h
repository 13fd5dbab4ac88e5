// A ledger in a temporary folder, what its callbacks saw, and what loading it visited.
#ifndef TESTS_SUPPORT_DAEMON_LEDGER_FIXTURE_H
#define TESTS_SUPPORT_DAEMON_LEDGER_FIXTURE_H

#include "daemon/store/ledger.h"

// Takes back what the newest migration did, for tests that make a ledger of before.
#define FIXTURE_WITHOUT_DIGESTS                                                                    \
    "ALTER TABLE job DROP COLUMN digest; ALTER TABLE result DROP COLUMN digest;"                   \
    "ALTER TABLE compiled DROP COLUMN digest; ALTER TABLE account DROP COLUMN digest;"             \
    "ALTER TABLE device_order DROP COLUMN digest;"

struct ledger_fixture {
    uv_loop_t loop;
    char *dir;
    char *path;
    struct ledger *ledger;
    uint64_t pages;   // largest size of the file; 0: no limit
    uint64_t entries; // of each cache; 0: no limit
    // What fixture_on_done saw.
    int calls;
    int failures;
    enum err_code last_error;
    struct bytes answer;
    size_t answer_count;
    // What fixture_on_row visited.
    size_t loaded;
    uint64_t state[8];
    uint64_t attempt[8];
    char key[8][32];
    char tenant[8][32];
    char reason[64];
    uint64_t cause[8];
    uint64_t wanted_class; // of the first one
};

// Opens the ledger with the limits fixture->pages and fixture->entries, and starts its thread.
void fixture_open_ledger(struct ledger_fixture *fixture);
// Everything posted has been carried out when this returns.
void fixture_close_ledger(struct ledger_fixture *fixture);
int fixture_set_up(void **state);
int fixture_tear_down(void **state);
// A ledger_done that counts calls and failures, and keeps answer[0].
void fixture_on_done(void *owner, const struct err *error, struct bytes *answer, size_t count);
// Notes a job that loading visits.
int fixture_on_row(void *owner, const struct ledger_job *job, struct err *err);
// Opens and loads the ledger as a restart would.
void fixture_reload(struct ledger_fixture *fixture);
// Posts a new job. cache is a text whose digest is its cache key, or NULL.
void fixture_submit(struct ledger_fixture *fixture, uint64_t id, const char *key, const char *cache,
                    ledger_adopt *adopt);
// Posts the end of a job in its first attempt.
void fixture_finish(struct ledger_fixture *fixture, uint64_t id, uint64_t job_state,
                    const char *result, const char *cache, const char *reason);
// Runs SQL on the closed file, as another version or another program would. It has row_digest.
void fixture_change_file(struct ledger_fixture *fixture, const char *sql);
// A ledger_adopt that accepts what fixture_finish has cached.
bool fixture_accept_and_change(const struct bytes *spec, double cap, struct bytes *result);
// A ledger_adopt that accepts nothing.
bool fixture_accept_nothing(const struct bytes *spec, double cap, struct bytes *result);

#endif
