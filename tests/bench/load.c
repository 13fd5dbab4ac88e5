#include "tests/bench/load.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/stats.h"
#include "tests/bench/samples.h"
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS_MAX (UINT64_C(1) << 22) // most rounds whose latencies are kept

void connections_open(struct connections *ret, struct session *session, size_t count)
{
    *ret = (struct connections){.count = count};
    struct remote *first;
    struct err err = ERR_INIT;
    if (session_daemon(session, &first, &err) < 0) {
        die(&err);
    }
    for (size_t i = 0; i < count; i++) {
        struct hello_reply hello;

        if (session_remote(session, remote_url(first), &ret->remote[i], &err) < 0 ||
            remote_hello_sync(ret->remote[i], "kcastd", &hello, &err) < 0) {
            die(&err);
        }
        message_clear(&hello_reply_message, &hello);
    }
}

void connections_close(struct connections *connections)
{
    for (size_t i = 0; i < connections->count; i++) {
        remote_close(connections->remote[i]);
    }
}

static void begin(struct round *round)
{
    round->start_ns = uv_hrtime();
    round->load->begin(round);
}

void load_round_done(struct round *round)
{
    struct load *load = round->load;
    uint64_t now = uv_hrtime();

    if (load->done < ROUNDS_MAX) {
        load->latency_us[load->done] = (double)(now - round->start_ns) / NS_PER_US;
    }
    load->done++;
    if (now < load->stop_ns) {
        begin(round);
    } else {
        load->in_flight--;
        free(round);
    }
}

static void on_answer(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    (void)retry_after_ms;
    (void)reply;
    if (error) {
        die(error);
    }
    load_round_done(owner);
}

void load_begin_plain(struct round *round)
{
    const struct plain *plain = round->load->owner;

    remote_call(round->remote, plain->op, plain->message, plain->body, plain->answer, 20000,
                on_answer, round);
}

void load_run(struct session *session, const struct connections *connections, size_t wide,
              struct load *load, size_t flight, double seconds)
{
    uint64_t start = uv_hrtime();

    load->done = 0;
    load->in_flight = flight;
    load->latency_us = xcalloc(ROUNDS_MAX, sizeof(*load->latency_us));
    load->stop_ns = start + (uint64_t)(seconds * NS_PER_S);
    for (size_t i = 0; i < flight; i++) {
        struct round *round = xcalloc(1, sizeof(*round));

        *round = (struct round){.load = load, .remote = connections->remote[i % wide]};
        begin(round);
    }
    while (load->in_flight > 0) {
        uv_run(session_loop(session), UV_RUN_ONCE);
    }
    double took = (double)(uv_hrtime() - start) / NS_PER_S;
    size_t kept = load->done < ROUNDS_MAX ? load->done : ROUNDS_MAX;
    stats_sort(load->latency_us, kept);
    printf("%-38s %3zu connections %4zu in flight %8.0f /s  p50 %8.1f us  p99 %8.1f us  most "
           "%8.1f us\n",
           load->name, wide, flight, (double)load->done / took,
           stats_quantile(load->latency_us, kept, 0.5),
           stats_quantile(load->latency_us, kept, 0.99), stats_quantile(load->latency_us, kept, 1));
    free(load->latency_us);
    load->latency_us = NULL;
}
