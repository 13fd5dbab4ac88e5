// Makes the object that the wisdom file has for a search (docs/tune.md has its keys).
#include "client/tune/tune.h"

#include "client/report/report_text.h"
#include "client/run/run_state.h"
#include "client/show.h"
#include "common/file.h"
#include "common/version.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// A path or name as a JSON text. Bytes that are no UTF-8 are replaced.
static json_t *clean_text(const char *text)
{
    struct strbuf clean = STRBUF_INIT;
    text_add_utf8(&clean, text, strlen(text));
    json_t *ret = show_text(strbuf_text(&clean));
    strbuf_release(&clean);
    return ret;
}

static json_t *time_text(double at)
{
    time_t seconds = (time_t)at;
    struct tm tm;
    gmtime_r(&seconds, &tm);
    char text[32];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    return json_string(text);
}

static json_t *case_params(const struct problem *problem, const struct shape_case *shape)
{
    json_t *object = json_object();
    for (size_t i = 0; i < problem->param_count; i++) {
        json_object_set_new(object, problem->param[i].name,
                            problem->param[i].type == PARAM_INT ? json_integer(shape->i[i])
                                                                : json_real(shape->f[i]));
    }
    return object;
}

// The benchmark cases, each with what the second measurement of the best candidate said of it.
static json_t *cases_of(const struct problem *problem, const struct result *result)
{
    json_t *list = json_array();
    for (size_t i = 0; i < problem->bench_count; i++) {
        json_t *object = json_object();
        struct strbuf name = STRBUF_INIT;
        problem_case_name(problem, &problem->bench[i], &name);
        const struct case_result *measured = NULL;
        for (size_t j = 0; result && !measured && j < result->cases_count; j++) {
            if (strcmp(result->cases[j].params, strbuf_text(&name)) == 0) {
                measured = &result->cases[j];
            }
        }
        json_object_set_new(object, "name", json_string(strbuf_text(&name)));
        json_object_set_new(object, "params", case_params(problem, &problem->bench[i]));
        if (measured) {
            json_object_set_new(object, "speedup", show_ratio(measured->speedup->log2));
            json_object_set_new(object, "ci95", show_interval(measured->speedup));
            json_object_set_new(object, "seconds", show_number(measured->candidate_ns->p50 / 1e9));
            json_object_set_new(object, "baseline_seconds",
                                show_number(measured->baseline_ns->p50 / 1e9));
        }
        json_array_append_new(list, object);
        strbuf_release(&name);
    }
    return list;
}

static json_t *dtypes_of(const struct problem *problem)
{
    json_t *object = json_object();
    for (size_t i = 0; i < problem->tensor_count; i++) {
        json_object_set_new(object, problem->tensor[i].name,
                            json_string(dtype_name(problem->tensor[i].dtype)));
    }
    return object;
}

// Sets "params" and "define", which are null without a best candidate. Parameters of templates are
// integers.
static void add_configuration(json_t *entry, const struct run_state_candidate *best)
{
    const struct run_proposed *proposed = best ? &best->proposed : NULL;
    json_t *params = json_object();
    struct strbuf define = STRBUF_INIT;
    for (size_t i = 0; proposed && i < proposed->params_count; i++) {
        const struct fact *fact = &proposed->params[i];
        json_object_set_new(params, fact->name, json_integer((json_int_t)fact->value));
        strbuf_addf(&define, "%s-D%s=%lld", i > 0 ? " " : "", fact->name, (long long)fact->value);
    }
    json_object_set_new(entry, "params", proposed ? json_incref(params) : json_null());
    json_object_set_new(entry, "define",
                        proposed ? json_string(strbuf_text(&define)) : json_null());
    json_decref(params);
    strbuf_release(&define);
}

static json_t *search_object(const struct run_state *run_state, const char *path)
{
    const struct run_started *started = &run_state->started;
    char seed[24];
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)started->seed);
    json_t *object = json_object();
    json_object_set_new(object, "run", clean_text(path));
    json_object_set_new(object, "seed", json_string(seed));
    json_object_set_new(object, "strategy", show_text(started->strategy));
    json_object_set_new(object, "policy", show_text(started->policy));
    json_object_set_new(object, "engine", show_text(run_state->session.engine));
    json_object_set_new(object, "considered", json_integer((json_int_t)run_state->considered));
    json_object_set_new(object, "measured", json_integer((json_int_t)run_state->measured));
    json_object_set_new(object, "trusted", json_integer((json_int_t)run_state->trusted));
    json_object_set_new(object, "audited", json_integer((json_int_t)run_state->audited));
    json_object_set_new(object, "records", json_integer((json_int_t)run_state->records));
    json_object_set_new(object, "device_seconds", show_number(run_state->device_seconds));
    json_object_set_new(object, "ended", show_text(run_state->finish_reason));
    return object;
}

json_t *tune_entry(const struct tune *tune, const struct problem *narrowed,
                   const struct run_state *run_state, const char *path)
{
    const struct run_state_candidate *best = run_state ? run_state_best(run_state) : NULL;
    const struct result *result = best ? best->record : NULL;
    const struct estimate *speedup = result ? result->speedup : NULL;
    const struct digest kernel = digest_of(tune->kernel->data, tune->kernel->len);
    json_t *entry = json_object();
    json_object_set_new(entry, "problem", show_text(narrowed->name));
    json_object_set_new(entry, "cases", cases_of(narrowed, result));
    json_object_set_new(entry, "device_class", show_text(tune->device_class));
    add_configuration(entry, best);
    json_object_set_new(entry, "log2_speedup", json_real(speedup ? speedup->log2 : 0));
    json_object_set_new(entry, "speedup", speedup ? show_ratio(speedup->log2) : json_real(1));
    json_object_set_new(entry, "ci95", speedup ? show_interval(speedup) : json_null());
    json_object_set_new(entry, "blocks",
                        speedup ? json_integer((json_int_t)speedup->blocks) : json_null());
    json_object_set_new(entry, "kernel", clean_text(file_base_name(tune->kernel_path)));
    json_object_set_new(entry, "kernel_digest", show_digest(&kernel));
    json_object_set_new(entry, "problem_digest", show_digest(&tune->dir->json_digest));
    json_object_set_new(entry, "reference_digest", show_digest(&tune->dir->reference_digest));
    json_object_set_new(entry, "baseline_digest", show_digest(&tune->dir->baseline_digest));
    json_object_set_new(entry, "dtypes", dtypes_of(narrowed));
    json_object_set_new(
        entry, "toolchain",
        show_text(run_state && run_state->baseline ? run_state->baseline->toolchain : NULL));
    json_object_set_new(entry, "tuned_at", time_text(run_state ? run_state->last_at : 0));
    if (run_state) {
        json_object_set_new(
            entry, "device",
            show_text(result && result->device ? result->device : run_state->session.device));
        json_object_set_new(
            entry, "device_facts",
            show_facts(run_state->session.device_facts, run_state->session.device_facts_count));
        json_object_set_new(entry, "host", show_text(run_state->session.host));
        json_object_set_new(entry, "sandbox", show_text(run_state->session.sandbox));
        json_object_set_new(entry, "release", show_text(KCAST_VERSION));
        json_object_set_new(entry, "search", search_object(run_state, path));
    }
    return entry;
}
