// kcastd with the real kcast-exec on cores: four searches whose weights and whose measurements
// differ share the device time as the weights say. What counts is charged device-seconds, and how
// many there have to be follows from the longest measurement, so a slow machine only takes longer.
// KCAST_SHARES_SECONDS=60 makes it a full minute and three points instead of some seconds and six.
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEARCHES 4
#define WINDOW 24    // jobs of a search at the daemon; none runs dry where submitting is slow
#define SECONDS 12.0 // device-seconds at least …
#define POINTS 6.0   // … for shares within so many points
#define FULL_POINTS 3.0
// After so many of the longest measurement two searches are one of it apart, each, at most.
#define LONGEST(points) (300.0 / (points))

static const double weight[SEARCHES] = {1, 1, 2, 4};
static const double max_seconds[SEARCHES] = {0.02, 0.2, 0.02, 0.1};

static const char source[] = "void copy(const float *A, float *B, int64_t N)\n"
                             "{ for (int64_t i = 0; i < N; i++) B[i] = A[i]; }\n// one more\n";

struct load {
    struct daemon_client *client;
    uint64_t job[SEARCHES * WINDOW]; // of search i / WINDOW
    unsigned submitted;
    double longest_s;
};

static void submit(struct load *load, size_t slot)
{
    size_t search = slot / WINDOW;
    char *key = xasprintf("k%u", load->submitted++);
    char name[] = {'s', (char)('0' + search), '\0'};
    struct job_spec spec = daemon_client_spec(load->client, source);

    spec.max_seconds = max_seconds[search];
    spec.repeat = load->submitted; // another job, but nothing to compile
    struct submit body;
    message_init(&submit_message, &body);
    body.search = name;
    body.key = key;
    body.spec = &spec;
    body.weight = weight[search];
    struct submitted reply;
    struct err err = ERR_INIT;
    if (daemon_client_call(load->client, OP_SUBMIT, &submit_message, &body, &submitted_message,
                           &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    load->job[slot] = reply.job;
    free(key);
}

// Waits until some are done, and replaces them.
static void replace_done(struct load *load)
{
    struct waited waited;

    daemon_client_wait_once(load->client, load->job, SEARCHES * WINDOW, 10000, &waited);
    for (size_t i = 0; i < waited.jobs_count; i++) {
        assert_int_equal(waited.jobs[i].state, JOB_DONE);
        load->longest_s = fmax(load->longest_s, waited.jobs[i].result->seconds->held);
        for (size_t slot = 0; slot < SEARCHES * WINDOW; slot++) {
            if (load->job[slot] == waited.jobs[i].job) {
                daemon_client_ack(load->client, load->job[slot]);
                submit(load, slot);
            }
        }
    }
    message_clear(&waited_message, &waited);
}

// Device-seconds of each search (as before when nothing of it waits or runs), and of all.
static double read_used(struct load *load, double *used)
{
    struct status status;

    daemon_client_status(load->client, &status);
    for (size_t i = 0; i < status.shares_count; i++) {
        const struct share_info *row = &status.shares[i];
        size_t search = (size_t)(row->search[1] - '0');

        assert_true(search < SEARCHES);
        used[search] = row->used_seconds;
    }
    double all = 0;
    for (size_t i = 0; i < SEARCHES; i++) {
        all += used[i];
    }
    message_clear(&status_message, &status);
    return all;
}

static void searches_share_as_their_weights_say(void **state)
{
    const char *full = getenv("KCAST_SHARES_SECONDS");
    double seconds = full ? strtod(full, NULL) : SECONDS;
    double points = full ? FULL_POINTS : POINTS;
    struct load load = {.client = *state};

    load.client->real_exec = true;
    if (!daemon_client_start(load.client)) {
        if (program_wait(&load.client->program) == EXIT_SANDBOX) {
            skip();
        }
        fail_msg("%s", program_log(&load.client->program));
    }
    for (size_t slot = 0; slot < SEARCHES * WINDOW; slot++) {
        submit(&load, slot);
    }
    double used[SEARCHES] = {0};
    double begun;
    // From the moment on from which everybody has something that waits.
    do {
        replace_done(&load);
        begun = read_used(&load, used);
    } while (used[0] <= 0 || used[1] <= 0 || used[2] <= 0 || used[3] <= 0);
    double base[SEARCHES];
    memcpy(base, used, sizeof(base));
    load.longest_s = 0;
    double all;
    do {
        replace_done(&load);
        all = read_used(&load, used) - begun;
    } while (all < seconds || all < LONGEST(points) * load.longest_s);
    print_message("%.1f device-seconds, %u measurements, the longest %.2f s:", all, load.submitted,
                  load.longest_s);
    for (size_t i = 0; i < SEARCHES; i++) {
        used[i] = 100 * (used[i] - base[i]) / all;
        print_message(" %.1f %%", used[i]);
    }
    print_message("\n");
    for (size_t i = 0; i < SEARCHES; i++) {
        assert_true(fabs(used[i] - 100 * weight[i] / 8) < points);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(searches_share_as_their_weights_say, daemon_client_set_up,
                                        daemon_client_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
