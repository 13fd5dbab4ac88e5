// What a worker adds to an endpoint's own latency: questions to an endpoint that answers after 200 ms,
// 1,000 of them in flight, five more every millisecond, from one thread (which is the endpoint's too).
//   bench_endpoint [QUESTIONS]     default 20000
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "tests/support/endpoint_stub.h"
#include "worker/endpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define IN_FLIGHT 1000
#define LATENCY_MS 200
#define WARM_UP (30 * IN_FLIGHT) // until the window is open

static const char body[] = "{\"choices\":[{\"message\":{\"content\":\"{\\\"bin\\\":\\\"E\\\"}\"}}]}";

struct bench {
    struct endpoints *endpoints;
    uv_loop_t loop;
    uv_timer_t pace;
    size_t posted, done, wanted, errors;
    double *ms; // added
};

struct question {
    struct bench *bench;
    uint64_t at_ns;
    size_t number;
};

static void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    (void)owner;
    (void)request;
    *reply = (struct stub_reply){.status = 200, .body = body, .delay_ms = LATENCY_MS};
}

static void build(void *owner, size_t endpoint, struct strbuf *out)
{
    (void)owner;
    (void)endpoint;
    strbuf_adds(out, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"");
    for (size_t i = 0; i < 400; i++) {
        strbuf_adds(out, "how fast? ");
    }
    strbuf_adds(out, "\"}]}");
}

static void post(struct bench *bench);

static void on_done(void *owner, const struct endpoint_result *result)
{
    struct question *question = owner;
    struct bench *bench = question->bench;

    bench->errors += result->err.code != ERR_NONE || result->status != 200;
    if (question->number >= WARM_UP) {
        bench->ms[question->number - WARM_UP] =
            (double)(uv_hrtime() - question->at_ns) / 1e6 - LATENCY_MS;
    }
    free(question);
    if (++bench->done == bench->wanted) {
        uv_stop(&bench->loop);
    }
}

static void on_pace(uv_timer_t *timer)
{
    struct bench *bench = timer->data;

    for (size_t i = 0; i < IN_FLIGHT / LATENCY_MS && bench->posted < bench->wanted; i++) {
        post(bench);
    }
}

static void post(struct bench *bench)
{
    struct question *question = xcalloc(1, sizeof(*question));
    struct endpoint_call call = {.path = "/chat/completions",
                                 .build = build,
                                 .done = on_done,
                                 .owner = question,
                                 .deadline_ms = 60000};

    question->bench = bench;
    question->number = bench->posted++;
    question->at_ns = uv_hrtime();
    endpoints_post(bench->endpoints, &call);
}

int main(int argc, char **argv)
{
    struct bench bench = {.posted = 0};
    struct endpoint_config config = {.model = "m", .weight = 1, .in_flight = 2 * IN_FLIGHT};
    struct err err = ERR_INIT;
    struct rusage usage;
    struct stub *stub;
    uint64_t questions = 20000;

    if (argc > 1 && parse_u64(&questions, argv[1], IN_FLIGHT, 10000000, "QUESTIONS", &err) < 0) {
        fprintf(stderr, "bench_endpoint: %s\n", err.text);
        return 2;
    }
    (void)uv_loop_init(&bench.loop);
    stub = stub_start(&bench.loop, answer, NULL);
    config.url = stub_url(stub);
    bench.wanted = questions + WARM_UP;
    bench.ms = xcalloc(questions, sizeof(*bench.ms));
    if (endpoints_create(&bench.endpoints, &bench.loop, &config, 1, NULL, &err) != 0) {
        fprintf(stderr, "bench_endpoint: %s\n", err.text);
        return 1;
    }
    (void)uv_timer_init(&bench.loop, &bench.pace);
    bench.pace.data = &bench;
    (void)uv_timer_start(&bench.pace, on_pace, 1, 1);
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    stats_sort(bench.ms, questions);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%llu questions, %d in flight, %zu errors: added latency p50 %.2f ms, p99 %.2f ms; resident at most"
           " %.1f MiB, the endpoint's part included; %.0f us of processor time each\n",
           (unsigned long long)questions, IN_FLIGHT, bench.errors,
           stats_quantile(bench.ms, questions, 0.5), stats_quantile(bench.ms, questions, 0.99),
           (double)usage.ru_maxrss / 1024,
           ((double)usage.ru_utime.tv_sec * 1e6 + (double)usage.ru_utime.tv_usec +
            (double)usage.ru_stime.tv_sec * 1e6 + (double)usage.ru_stime.tv_usec) /
               (double)bench.wanted);
    uv_close((uv_handle_t *)&bench.pace, NULL);
    endpoints_close(bench.endpoints);
    stub_stop(stub);
    while (uv_run(&bench.loop, UV_RUN_DEFAULT) != 0) {
    }
    free(bench.ms);
    return bench.errors == 0 ? 0 : 1;
}
