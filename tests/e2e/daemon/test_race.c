// A CANCEL races the end of the job that it is about: whoever wins, there is one end. The
// canceller, somebody who waits, who asks later, and the ledger after SIGKILL all say the same.
//
// The moment is drawn, and the range it is drawn from follows the outcomes, so that it lies about
// the job's end however fast the machine is. KCAST_SEED repeats the draws.
#include "common/clock.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 300
#define FIRST_DELAY_NS 5e6
#define ADAPT 1.15 // of the delay after each outcome

// What somebody was told of the job's end.
struct told {
    bool answered;
    uint64_t state;
    bool has_result;
};

static void take(struct told *told, const struct job_info *info)
{
    told->answered = true;
    told->state = info->state;
    told->has_result = info->result;
}

static void on_waited(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    const struct waited *waited = reply;

    (void)retry_after_ms;
    if (error) {
        fail_msg("WAIT: %s", error->text);
    }
    assert_int_equal(waited->jobs_count, 1);
    take(owner, &waited->jobs[0]);
}

static void on_cancelled(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    const struct job_infos *infos = reply;

    (void)retry_after_ms;
    if (error) {
        fail_msg("CANCEL: %s", error->text);
    }
    assert_int_equal(infos->jobs_count, 1);
    take(owner, &infos->jobs[0]);
}

static void ask_to_wait(struct remote *remote, uint64_t *job, struct told *told)
{
    struct wait body;

    message_init(&wait_message, &body);
    body.jobs = job;
    body.jobs_count = 1;
    body.max_ms = 20000;
    remote_call(remote, OP_WAIT, &wait_message, &body, &waited_message, PROGRAM_LIMIT_MS, on_waited,
                told);
}

static void ask_to_cancel(struct remote *remote, uint64_t *job, struct told *told)
{
    struct job_ids body;

    message_init(&job_ids_message, &body);
    body.jobs = job;
    body.jobs_count = 1;
    remote_call(remote, OP_CANCEL, &job_ids_message, &body, &job_infos_message, PROGRAM_LIMIT_MS,
                on_cancelled, told);
}

// One round: the job, and what its canceller was told of it.
static uint64_t race(struct daemon_client *client, struct remote *other, struct job_spec *spec,
                     double delay_ns, struct told *ret)
{
    struct submitted reply;
    struct err err = ERR_INIT;
    char *key = xasprintf("k%llu", (unsigned long long)spec->repeat);

    if (daemon_client_submit(client, "test", key, spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    struct told waiter = {0};
    ask_to_wait(other, &reply.job, &waiter);
    uint64_t until_ns = clock_now_ns(&clock_system) + (uint64_t)delay_ns;
    while (clock_now_ns(&clock_system) < until_ns) {
        (void)uv_run(&client->loop, UV_RUN_NOWAIT);
    }
    struct told canceller = {0};
    ask_to_cancel(client->remote, &reply.job, &canceller);
    while (!waiter.answered || !canceller.answered) {
        (void)uv_run(&client->loop, UV_RUN_ONCE);
    }
    assert_true(canceller.state == JOB_CANCELLED || canceller.state == JOB_DONE);
    assert_int_equal(waiter.state, canceller.state);
    assert_int_equal(waiter.has_result, canceller.state == JOB_DONE);
    free(key);
    *ret = canceller;
    return reply.job;
}

static void expect(struct daemon_client *client, const uint64_t *job, const struct told *told)
{
    for (size_t i = 0; i < ROUNDS; i++) {
        struct job_info info;

        daemon_client_wait(client, job[i], &info);
        if (info.state != told[i].state || (!!info.result) != (info.state == JOB_DONE)) {
            fail_msg("round %zu: the canceller was told %s, now it is %s", i,
                     job_state_name(told[i].state), job_state_name(info.state));
        }
        message_clear(&job_info_message, &info);
    }
}

static void whoever_wins_there_is_one_end(void **state)
{
    struct daemon_client *client = *state;
    const char *given = getenv("KCAST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : stats_entropy() >> 32;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    static uint64_t job[ROUNDS];
    static struct told told[ROUNDS];

    print_message("KCAST_SEED=%llu\n", (unsigned long long)seed);
    struct stats_rng rng;
    stats_rng_init(&rng, seed, 0);
    struct remote *other = NULL;
    assert_int_equal(remote_create(&other, &client->loop, client->program.url, NULL), 0);
    double delay_ns = FIRST_DELAY_NS;
    unsigned done = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        spec.repeat = i + 1;
        if (i % 3 == 0) { // with a compilation before it
            char *source = xasprintf("int x%zu;\n", i);

            spec.candidate = daemon_client_put(client, source, strlen(source));
            free(source);
        }
        job[i] = race(client, other, &spec, delay_ns * (0.5 + stats_rng_unit(&rng)), &told[i]);
        done += told[i].state == JOB_DONE;
        delay_ns *= told[i].state == JOB_DONE ? 1 / ADAPT : ADAPT;
    }
    print_message("%u of %u were finished first; the last delay was %.2f ms\n", done, ROUNDS,
                  delay_ns / 1e6);
    assert_in_range(done, ROUNDS / 10, ROUNDS - ROUNDS / 10);
    remote_close(other);
    expect(client, job, told);
    assert_int_equal(program_kill(&client->program), -9);
    daemon_client_disconnect(client);
    assert_true(daemon_client_start(client));
    expect(client, job, told);
    // The device is as good as before.
    daemon_client_expect(client, daemon_client_accepted(client, "last", "int last;\n"), JOB_DONE,
                         VERDICT_FASTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whoever_wins_there_is_one_end, daemon_client_set_up_started,
                                        daemon_client_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
