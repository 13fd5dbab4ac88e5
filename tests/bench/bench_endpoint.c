// What a worker adds to an endpoint's own latency. The engine llm forecasts with an endpoint
// (another process) that answers after 200 ms. 1,000 forecasts are in flight and five more come
// every millisecond, all on one thread: prompt, request, answer, cache, recalibration.
//  bench_endpoint [QUESTIONS]     default 20000
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "tests/support/endpoint_stub.h"
#include "worker/llm/engine_llm.h"
#include "worker/llm/llm.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define IN_FLIGHT 1000
#define LATENCY_MS 200
#define WARM_UP (30 * IN_FLIGHT) // questions until the rate limit's window is fully open
#define SOURCE_BYTES 2000

static const char body[] =
    "{\"choices\":[{\"message\":{\"content\":\"{\\\"bin\\\":\\\"E\\\",\\\"p\\\":{\\\"D\\\":0.2,"
    "\\\"E\\\":0.5,\\\"F\\\":0.3},\\\"p_correct\\\":0.97}\"},\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":1200,\"completion_tokens\":40}}";

struct bench {
    void *engine;
    uv_loop_t loop;
    uv_timer_t pace;
    size_t posted, done, wanted, errors;
    double *ms; // latency that the worker added, for each question
};

struct question {
    struct bench *bench;
    uint64_t at_ns;
    size_t number;
};

// ---- the endpoint ----

static void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    (void)owner;
    (void)request;
    *reply = (struct stub_reply){.status = 200, .body = body, .delay_ms = LATENCY_MS};
}

// Starts the endpoint as a process that ends with this one. Returns its URL, which the caller
// frees; NULL when it cannot be started.
static char *start_endpoint(pid_t *ret)
{
    int ends[2];

    if (pipe(ends) != 0 || (*ret = fork()) < 0) {
        return NULL;
    }
    char url[128] = "";
    uv_loop_t loop;
    if (*ret == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)uv_loop_init(&loop);
        (void)snprintf(url, sizeof(url), "%s", stub_url(stub_start(&loop, answer, NULL)));
        if (write(ends[1], url, sizeof(url)) == sizeof(url)) {
            (void)uv_run(&loop, UV_RUN_DEFAULT);
        }
        _exit(1);
    }
    close(ends[1]);
    if (read(ends[0], url, sizeof(url)) != sizeof(url)) {
        return NULL;
    }
    close(ends[0]);
    return xstrdup(url);
}

// ---- questions ----

static void on_done(void *owner, const struct err *error, const void *opaque)
{
    const struct forecast_reply *reply = opaque;
    struct question *question = owner;
    struct bench *bench = question->bench;

    bench->errors += error || !reply->forecasts[0].raw;
    if (question->number >= WARM_UP) {
        bench->ms[question->number - WARM_UP] =
            (double)(uv_hrtime() - question->at_ns) / 1e6 - LATENCY_MS;
    }
    free(question);
    if (++bench->done == bench->wanted) {
        uv_stop(&bench->loop);
    }
}

// A source of about SOURCE_BYTES bytes, different for each number.
static struct bytes source_of(size_t number)
{
    struct strbuf text = STRBUF_INIT;

    while (text.len < SOURCE_BYTES) {
        strbuf_addf(&text, "    y[%zu * i + %zu] = a * x[i] + y[i];\n", number, text.len);
    }
    struct bytes bytes = bytes_copy(text.data, text.len);
    strbuf_release(&text);
    return bytes;
}

static void post(struct bench *bench)
{
    struct question *question = xcalloc(1, sizeof(*question));
    struct forecast_request request;

    message_init(&forecast_request_message, &request);
    request.problem = xstrdup("axpy");
    request.device_class = xstrdup("gpu");
    request.search = xstrdup("bench");
    request.context = xcalloc(1, sizeof(*request.context));
    message_init(&search_context_message, request.context);
    request.context->baseline = source_of(0);
    request.candidates = xcalloc(1, sizeof(*request.candidates));
    request.candidates_count = 1;
    message_init(&candidate_facts_message, request.candidates);
    request.candidates->source = source_of(bench->posted + 1);
    question->bench = bench;
    question->number = bench->posted++;
    question->at_ns = uv_hrtime();
    engine_llm.forecast(bench->engine, &request, on_done, question);
}

static void on_pace(uv_timer_t *timer)
{
    struct bench *bench = timer->data;

    for (size_t i = 0; i < IN_FLIGHT / LATENCY_MS && bench->posted < bench->wanted; i++) {
        if (bench->posted < WARM_UP && bench->posted - bench->done >= IN_FLIGHT) {
            // Otherwise requests that wait for the window to open would pile up.
            break;
        }
        post(bench);
    }
}

static void report(const struct bench *bench, uint64_t questions)
{
    stats_sort(bench->ms, questions);
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%llu forecasts, %d in flight, %zu errors: added latency p50 %.2f ms, p99 %.2f ms; "
           "resident at most "
           "%.1f MiB; %.0f us of processor time each\n",
           (unsigned long long)questions, IN_FLIGHT, bench->errors,
           stats_quantile(bench->ms, questions, 0.5), stats_quantile(bench->ms, questions, 0.99),
           (double)usage.ru_maxrss / 1024,
           ((double)usage.ru_utime.tv_sec * 1e6 + (double)usage.ru_utime.tv_usec +
            (double)usage.ru_stime.tv_sec * 1e6 + (double)usage.ru_stime.tv_usec) /
               (double)bench->wanted);
}

int main(int argc, char **argv)
{
    struct bench bench = {.posted = 0};
    struct endpoint_config endpoint = {.model = "m", .weight = 1, .in_flight = 2 * IN_FLIGHT};
    struct llm_config llm = {
        .endpoints = &endpoint, .count = 1, .samples = 1, .max_tokens = 100, .deadline_ms = 60000};
    struct engine_config config = {.loop = &bench.loop, .llm = &llm};
    struct err err = ERR_INIT;
    uint64_t questions = 20000;
    char *url, *dir = NULL;

    if (argc > 1 && parse_u64(&questions, argv[1], IN_FLIGHT, 10000000, "QUESTIONS", &err) < 0) {
        fprintf(stderr, "bench_endpoint: %s\n", err.text);
        return 2;
    }
    pid_t pid = -1;
    url = start_endpoint(&pid);
    (void)uv_loop_init(&bench.loop);
    if (!url || file_make_temp_dir(&dir, "kcast-bench", &err) != 0) {
        fprintf(stderr, "bench_endpoint: no endpoint or no folder %s\n", err.text);
        return 1;
    }
    endpoint.url = url;
    config.state_dir = dir;
    bench.wanted = questions + WARM_UP;
    bench.ms = xcalloc(questions, sizeof(*bench.ms));
    if (engine_llm.open(&bench.engine, &config, &err) != 0) {
        fprintf(stderr, "bench_endpoint: %s\n", err.text);
        return 1;
    }
    (void)uv_timer_init(&bench.loop, &bench.pace);
    bench.pace.data = &bench;
    (void)uv_timer_start(&bench.pace, on_pace, 1, 1);
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    report(&bench, questions);
    uv_close((uv_handle_t *)&bench.pace, NULL);
    engine_llm.close(bench.engine);
    while (uv_run(&bench.loop, UV_RUN_DEFAULT) != 0) {
    }
    kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    if (file_remove_tree(dir, &err) != 0) {
        fprintf(stderr, "bench_endpoint: %s\n", err.text);
    }
    free(bench.ms);
    free(dir);
    free(url);
    return bench.errors == 0 ? 0 : 1;
}
