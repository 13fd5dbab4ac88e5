// What the words of a prompt are worth: several workers (of this release and of an earlier one,
// each with a language model behind it) are asked for forecasts of the same candidates of a
// recorded space, in the same states of made-up searches. Printed for `kcast eval` is one JSON line
// for each forecast, with its outcome, and the worker's label as its engine. In each state MEASURED
// random candidates have been measured, and the best of them is the best so far; COUNT others are
// asked about. What is printed is what the model said, before recalibration; nothing is told to the
// workers. A candidate without a forecast gets a line on stderr and none on stdout.
//  bench_prompt SPACE PROBLEM STATES COUNT SEED LABEL=URL...
// The problem's folder has the texts that the space does not keep. Lines are written as they come,
// so that what was asked counts when the program is ended early.
#include "client/forecast/forecast_request.h"
#include "client/forecast/neighbours.h"
#include "client/forecast/search_text.h"
#include "client/problem/problem_dir.h"
#include "client/run/improvement.h"
#include "client/space/space_source.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "net/rpc/remote.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEASURED 5
#define ASK_MS 7200000 // deadline of a request
#define WORKERS_MAX 4
#define COUNT_MAX 64

struct bench {
    struct space space;
    struct space_sources sources;
    struct problem_dir dir;
    const char *path;
    uv_loop_t loop;
    struct {
        char *label;
        struct remote *remote;
    } worker[WORKERS_MAX];
    size_t workers, count;
};

// A search as far as it has come: candidates 1 … MEASURED have outcomes, the others compiled.
struct made_up {
    const struct bench *bench;
    struct run_state run_state;
    struct run_state_candidate candidate[MEASURED + COUNT_MAX];
    struct run_state_incumbent incumbent;
    size_t place[MEASURED + COUNT_MAX]; // in the space
};

static void check(int rc, const struct err *err)
{
    if (rc != 0) {
        die(err);
    }
}

// Reads a text of the search by its digest.
static int read_text(void *owner, const struct digest *digest, struct bytes *ret, struct err *err)
{
    const struct made_up *made_up = owner;
    const struct bench *bench = made_up->bench;
    const struct run_started *started = &made_up->run_state.started;
    const struct {
        const struct digest *digest;
        const struct bytes *text;
    } known[] = {{&started->problem_json, &bench->dir.json},
                 {&started->readme, &bench->dir.readme},
                 {&started->baseline, &bench->dir.baseline}};

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (digest_equal(known[i].digest, digest)) {
            *ret = bytes_copy(known[i].text->data, known[i].text->len);
            return 0;
        }
    }
    for (size_t i = 0; i < made_up->run_state.candidate_count; i++) {
        if (digest_equal(&made_up->candidate[i].proposed.source, digest)) {
            struct strbuf text = STRBUF_INIT;
            bool is_known = false;
            int rc = space_sources_get(&bench->sources, made_up->place[i], &text, &is_known, err);

            if (rc == 0 && is_known) {
                *ret = bytes_copy(text.data, text.len);
            } else if (rc == 0) {
                rc = err_set(err, ERR_NOT_FOUND, "%s keeps no source of %s", bench->path,
                             bench->space.candidate[made_up->place[i]].name);
            }
            strbuf_release(&text);
            return rc;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "a text that the search does not have");
}

// The result that counts.
static struct result *result_of(const struct space_candidate *of)
{
    return of->record && verdict_is_ratio(of->record->verdict) ? of->record : of->result;
}

static bool is_useful(const struct space_candidate *of)
{
    return of->compiled && of->compiled->verdict == VERDICT_NONE && of->result;
}

// Draws the candidates of a state.
static void draw(struct made_up *made_up, struct bench *bench, uint64_t seed, uint64_t state)
{
    struct stats_rng rng;
    struct run_state *run_state = &made_up->run_state;
    size_t all = (size_t)bench->space.head.candidates;

    *made_up = (struct made_up){.bench = bench};
    stats_rng_init(&rng, seed, state + 1);
    run_state->candidate = made_up->candidate;
    run_state->started.problem = bench->space.head.problem;
    run_state->started.search = (char *)(uintptr_t) "bench_prompt";
    run_state->started.problem_json = digest_of(bench->dir.json.data, bench->dir.json.len);
    run_state->started.readme = digest_of(bench->dir.readme.data, bench->dir.readme.len);
    run_state->started.baseline = digest_of(bench->dir.baseline.data, bench->dir.baseline.len);
    run_state->session.device_class = bench->space.head.device_class;
    run_state->session.device_facts = bench->space.head.device_facts;
    run_state->session.device_facts_count = bench->space.head.device_facts_count;
    run_state->baseline = bench->space.head.baseline;
    while (run_state->candidate_count < MEASURED + bench->count) {
        size_t place = (size_t)stats_rng_below(&rng, all), id = run_state->candidate_count;
        const struct space_candidate *of = &bench->space.candidate[place];
        bool drawn = false;

        for (size_t i = 0; i < id; i++) {
            drawn |= made_up->place[i] == place;
        }
        if (drawn || !is_useful(of)) {
            continue;
        }
        made_up->place[id] = place;
        made_up->candidate[id].proposed = (struct run_proposed){.candidate = id + 1,
                                                                .name = of->name,
                                                                .source = of->digest,
                                                                .params = of->params,
                                                                .params_count = of->params_count};
        made_up->candidate[id].compiled = of->compiled;
        made_up->candidate[id].result = id < MEASURED ? result_of(of) : NULL;
        run_state->candidate_count++;
    }
}

// The best of the measured ones is the best so far, when it is an improvement on the baseline.
static void find_best(struct made_up *made_up)
{
    const struct estimate *best = NULL;

    for (size_t i = 0; i < MEASURED; i++) {
        const struct result *result = made_up->candidate[i].result;

        if (verdict_is_ratio(result->verdict) && result->speedup &&
            result->speedup->log2 >= (best ? best->log2 : 0) + IMPROVEMENT_MARGIN_LOG2) {
            best = result->speedup;
            made_up->incumbent.event.candidate = i + 1;
            made_up->incumbent.event.speedup = result->speedup;
        }
    }
    if (best) {
        made_up->run_state.incumbent = &made_up->incumbent;
        made_up->run_state.incumbent_count = 1;
    }
}

static void print(const struct made_up *made_up, const char *label, uint64_t state,
                  const struct forecast *forecast)
{
    size_t place = made_up->place[forecast->id - 1];
    const struct space_candidate *of = &made_up->bench->space.candidate[place];
    const struct result *result = result_of(of);
    const struct raw_forecast *raw = forecast->raw;

    fprintf(stderr, "%s: %s: %llu tokens in (%llu kept), %llu out, %.0f s, %llu requests%s%s\n",
            label, of->name, (unsigned long long)forecast->input_tokens,
            (unsigned long long)forecast->cached_tokens,
            (unsigned long long)forecast->output_tokens, forecast->seconds,
            (unsigned long long)forecast->requests, raw ? "" : ": ",
            raw ? "" : (forecast->reason ? forecast->reason : "no forecast"));
    if (!raw || raw->bins_count != BIN_COUNT) {
        return;
    }
    printf("{\"engine\":\"%s\",\"cluster\":\"%s %llu\",\"verdict\":\"%s\"", label,
           made_up->bench->path, (unsigned long long)state, verdict_name(result->verdict));
    if (verdict_is_ratio(result->verdict)) {
        printf(",\"log2\":%.9g", result->speedup->log2);
    }
    printf(",\"incumbent_log2\":%.9g,\"p_correct\":%.9g,\"p_improves\":%.9g,\"bins\":[",
           run_state_incumbent_before(&made_up->run_state, MEASURED), raw->p_correct,
           raw->p_improves);
    for (size_t i = 0; i < BIN_COUNT; i++) {
        printf("%s%.9g", i == 0 ? "" : ",", raw->bins[i]);
    }
    printf("]}\n");
}

// Asks one worker about the candidates of the state.
static void ask(struct made_up *made_up, struct bench *bench, size_t worker, uint64_t state)
{
    struct err err = ERR_INIT;
    struct forecast_request request;
    struct forecast_reply reply;
    struct neighbours *neighbours = neighbours_create(read_text, made_up);

    forecast_questions(&made_up->run_state, MEASURED + 1, made_up->run_state.candidate_count,
                       MEASURED, &request);
    request.context = xcalloc(1, sizeof(*request.context));
    check(
        search_text_make(request.context, &made_up->run_state, MEASURED, read_text, made_up, &err),
        &err);
    for (size_t i = 0; i < request.candidates_count; i++) {
        check(
            read_text(made_up, &request.candidates[i].digest, &request.candidates[i].source, &err),
            &err);
    }
    check(neighbours_add(neighbours, &made_up->run_state, MEASURED, &request, &err), &err);
    check(remote_call_sync(bench->worker[worker].remote, OP_FORECAST, &forecast_request_message,
                           &request, &forecast_reply_message, &reply, ASK_MS, &err),
          &err);
    for (size_t i = 0; i < reply.forecasts_count; i++) {
        print(made_up, bench->worker[worker].label, state, &reply.forecasts[i]);
    }
    fflush(stdout);
    message_clear(&forecast_reply_message, &reply);
    for (size_t i = 0; i < request.candidates_count; i++) {
        bytes_clear(&request.candidates[i].source);
        free(request.candidates[i].nearest);
    }
    message_clear(&search_context_message, request.context);
    free(request.context);
    forecast_questions_free(&request);
    neighbours_free(neighbours);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct bench bench = {.path = argc > 1 ? argv[1] : ""};
    struct made_up made_up;
    uint64_t states, count, seed;

    if (argc < 7 || argc > 6 + WORKERS_MAX) {
        fprintf(stderr, "usage: bench_prompt SPACE PROBLEM STATES COUNT SEED LABEL=URL...\n");
        return 2;
    }
    check(parse_u64(&states, argv[3], 1, 1000, "STATES", &err), &err);
    check(parse_u64(&count, argv[4], 1, COUNT_MAX, "COUNT", &err), &err);
    check(parse_u64(&seed, argv[5], 0, UINT64_MAX, "SEED", &err), &err);
    bench.count = (size_t)count;
    (void)signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&bench.loop);
    check(space_read(&bench.space, bench.path, &err), &err);
    check(space_sources_init(&bench.sources, &bench.space, bench.path, &err), &err);
    check(problem_dir_load(&bench.dir, argv[2], &err), &err);
    for (int i = 6; i < argc; i++) {
        char *url = strchr(argv[i], '=');

        if (!url) {
            (void)err_set(&err, ERR_USAGE, "%s is no LABEL=URL", argv[i]);
            die(&err);
        }
        bench.worker[bench.workers].label = xstrndup(argv[i], (size_t)(url - argv[i]));
        check(remote_create(&bench.worker[bench.workers++].remote, &bench.loop, url + 1, &err),
              &err);
    }
    for (uint64_t state = 0; state < states; state++) {
        draw(&made_up, &bench, seed, state);
        find_best(&made_up);
        for (size_t i = 0; i < bench.workers; i++) {
            ask(&made_up, &bench, i, state);
        }
    }
    for (size_t i = 0; i < bench.workers; i++) {
        remote_close(bench.worker[i].remote);
        free(bench.worker[i].label);
    }
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    problem_dir_release(&bench.dir);
    space_sources_release(&bench.sources);
    space_release(&bench.space);
    return 0;
}
