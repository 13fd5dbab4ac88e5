// A search sends a hundred thousand jobs over several connections: past its limit it is told to try
// again later, the daemon stays small, and the one job of another search is next.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define JOBS 100000U
#define QUEUE_MAX 4096U // the daemon's default
#define CONNECTIONS 4
#define FLIGHT 64     // requests under way on each
#define GROWTH_MIB 24 // for what is accepted, its compilations and the ledger's cache
// A sanitizer's allocator keeps what was freed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_SAYS_NOTHING true
#else
#define MEMORY_SAYS_NOTHING false
#endif

static const char one[] = "int one;\n";

struct flood {
    struct job_spec spec;
    unsigned sent, answered, accepted, busy, waits; // waits: busy with a time to try again
};

struct sender {
    struct flood *flood;
    struct remote *remote;
};

static void send_next(struct sender *sender);

static void on_answer(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct sender *sender = owner;
    struct flood *flood = sender->flood;

    (void)reply;
    flood->answered++;
    if (!error) {
        flood->accepted++;
    } else if (error->code == ERR_BUSY) {
        flood->busy++;
        flood->waits += retry_after_ms > 0 && retry_after_ms <= 60000;
    } else {
        fail_msg("%s", error->text);
    }
    if (flood->sent < JOBS) {
        send_next(sender);
    }
}

static void send_next(struct sender *sender)
{
    struct flood *flood = sender->flood;
    char key[16];

    (void)snprintf(key, sizeof(key), "k%u", flood->sent);
    struct submit body;
    message_init(&submit_message, &body);
    body.search = (char *)(uintptr_t) "flood";
    body.key = key;
    body.spec = &flood->spec;
    flood->spec.repeat = ++flood->sent; // all different, but for the source
    remote_call(sender->remote, OP_SUBMIT, &submit_message, &body, &submitted_message,
                PROGRAM_LIMIT_MS, on_answer, sender);
}

static double resident_mib(pid_t pid)
{
    char *path = xasprintf("/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    unsigned long pages = 0;
    assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
    fclose(file);
    free(path);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void send_all(struct daemon_client *client, struct flood *flood)
{
    struct sender sender[CONNECTIONS];

    for (size_t i = 0; i < CONNECTIONS; i++) {
        sender[i] = (struct sender){.flood = flood};
        assert_int_equal(remote_create(&sender[i].remote, &client->loop, client->program.url, NULL),
                         0);
        for (size_t k = 0; k < FLIGHT; k++) {
            send_next(&sender[i]);
        }
    }
    while (flood->answered < JOBS) {
        (void)uv_run(&client->loop, UV_RUN_ONCE);
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        remote_close(sender[i].remote);
    }
}

// Which of the measurements that have begun was this candidate's, from 1 on.
static size_t place_of(struct daemon_client *client, const char *candidate)
{
    struct digest digest = digest_of(candidate, strlen(candidate));
    char hex[DIGEST_HEX_LEN + 1];

    digest_hex(&digest, hex);
    struct bytes log = {0};
    assert_int_equal(file_read(&log, client->log, (size_t)16 << 20, NULL), 0);
    char *save = NULL;
    size_t place = 0;
    bool found = false;
    for (char *line = strtok_r((char *)log.data, "\n", &save); line && !found;
         line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "measure ", 8) == 0) {
            place++;
            found = strncmp(line + 8, hex, 16) == 0;
        }
    }
    bytes_clear(&log);
    assert_true(found);
    return place;
}

static void a_flood_is_told_to_wait_and_delays_nobody(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *holder = xasprintf("//! gate %s\n", gate);
    uint64_t holds = daemon_client_accepted(client, "holds", holder);
    struct job_spec spec = daemon_client_spec(client, one);

    // So that the one measurement that newcomers wait for ends when the test says so.
    (void)daemon_client_gate_wait(gate);
    struct flood flood = {.sent = 0};
    flood.spec = daemon_client_spec(client, "int flood;\n");
    double grown = -resident_mib(client->program.pid);
    send_all(client, &flood);
    grown += resident_mib(client->program.pid);
    print_message("%u accepted, %u busy; the daemon grew by %.1f MiB\n", flood.accepted, flood.busy,
                  grown);
    assert_int_equal(flood.accepted, QUEUE_MAX);
    assert_int_equal(flood.busy, JOBS - QUEUE_MAX);
    assert_int_equal(flood.waits, flood.busy);
    assert_true(MEMORY_SAYS_NOTHING || grown < GROWTH_MIB);

    struct submitted reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "other", "k", &spec, &reply, &err), 0);
    daemon_client_until(client, reply.job, JOB_READY); // compiled before most of the flood
    daemon_client_gate_open(gate);
    daemon_client_expect(client, holds, JOB_DONE, VERDICT_FASTER);
    daemon_client_expect(client, reply.job, JOB_DONE, VERDICT_FASTER);
    assert_in_range(place_of(client, one), 2, 3); // behind what ran, and one more at most
    free(holder);
    free(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_flood_is_told_to_wait_and_delays_nobody,
                                        daemon_client_set_up_started, daemon_client_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
