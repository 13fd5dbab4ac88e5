#include "client/program/request.h"

#include "common/mem.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

// ---- values ----

// Sets text that may not be UTF-8; what is not becomes null.
static void set_text(json_t *object, const char *key, const char *text)
{
    json_t *value = text ? json_string(text) : NULL;

    json_object_set_new(object, key, value ? value : json_null());
}

static void set_number(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

static int set_blob(json_t *object, const char *key, const struct digest *digest,
                    search_text_reader *read, void *owner, size_t *ret_len, struct err *err)
{
    struct bytes data = {0};

    if (digest_is_zero(digest)) {
        json_object_set_new(object, key, json_null());
        return 0;
    }
    int rc = read(owner, digest, &data, err);
    if (rc == 0) {
        json_t *text = json_stringn((const char *)data.data, data.len);

        json_object_set_new(object, key, text ? text : json_null());
        *ret_len = data.len;
        bytes_clear(&data);
    }
    return rc;
}

// ---- candidates ----

static const struct result *result_of(const struct run_state_candidate *candidate)
{
    return candidate->record ? candidate->record : candidate->result;
}

static bool has_outcome(const struct run_state_candidate *candidate)
{
    return result_of(candidate) ||
           (candidate->compiled && candidate->compiled->verdict != VERDICT_NONE);
}

static void set_params(json_t *object, const struct run_proposed *proposed)
{
    if (proposed->params_count > 0) {
        json_t *params = json_object();

        for (size_t i = 0; i < proposed->params_count; i++) {
            set_number(params, proposed->params[i].name, proposed->params[i].value);
        }
        json_object_set_new(object, "params", params);
    }
}

// What became of it: a ratio, or why there is none, with what compiler and candidate printed.
static void set_outcome(json_t *object, const struct run_state_candidate *candidate)
{
    const struct result *result = result_of(candidate);
    const struct compiled *compiled = candidate->compiled;

    if (result) {
        set_text(object, "verdict", verdict_name((enum verdict)result->verdict));
        if (verdict_is_ratio((enum verdict)result->verdict) && result->speedup) {
            const struct estimate *e = result->speedup;

            set_number(object, "speedup", exp2(e->log2));
            json_object_set_new(object, "ci95",
                                json_pack("[f, f]", exp2(isfinite(e->lo) ? e->lo : e->log2),
                                          exp2(isfinite(e->hi) ? e->hi : e->log2)));
        }
        if (result->reason) {
            set_text(object, "reason", result->reason);
        }
        if (result->output_tail) {
            set_text(object, "output", result->output_tail);
        }
    } else if (compiled && compiled->verdict != VERDICT_NONE) {
        set_text(object, "verdict", verdict_name((enum verdict)compiled->verdict));
        set_text(object, "reason", compiled->reason);
        if (compiled->log) {
            set_text(object, "diagnostics", compiled->log);
        }
    }
}

struct writer {
    const struct run_state *run_state;
    uint64_t visible;
    search_text_reader *read;
    void *owner;
};

// Of a candidate beyond those that are visible no outcome is told.
static json_t *describe(const struct writer *w, uint64_t id)
{
    const struct run_state_candidate *candidate = &w->run_state->candidate[id - 1];
    json_t *object = json_object();

    json_object_set_new(object, "candidate", json_integer((json_int_t)id));
    set_text(object, "name", candidate->proposed.name);
    if (candidate->proposed.parent != 0) {
        json_object_set_new(object, "parent", json_integer((json_int_t)candidate->proposed.parent));
    }
    set_params(object, &candidate->proposed);
    if (id <= w->visible) {
        set_outcome(object, candidate);
    }
    return object;
}

// ---- the parts of the line ----

static int set_problem(json_t *line, const struct writer *w, struct err *err)
{
    const struct run_started *started = &w->run_state->started;
    json_t *problem = json_object();
    struct bytes json = {0};
    size_t len;

    json_object_set_new(line, "problem", problem);
    set_text(problem, "name", started->problem);
    int rc = w->read(w->owner, &started->problem_json, &json, err);
    if (rc != 0) {
        return rc;
    }
    json_t *contract = json_loadb((const char *)json.data, json.len, 0, NULL);
    bytes_clear(&json);
    json_object_set_new(problem, "contract", contract ? contract : json_null());
    rc = set_blob(problem, "readme", &started->readme, w->read, w->owner, &len, err);
    if (rc == 0) {
        rc = set_blob(problem, "baseline", &started->baseline, w->read, w->owner, &len, err);
    }
    return rc;
}

// The candidate with its source; null for number 0.
static int set_candidate(json_t *line, const char *key, const struct writer *w, uint64_t id,
                         struct err *err)
{
    size_t len;

    if (id == 0) {
        json_object_set_new(line, key, json_null());
        return 0;
    }
    json_t *object = describe(w, id);
    json_object_set_new(line, key, object);
    return set_blob(object, "source", &w->run_state->candidate[id - 1].proposed.source, w->read,
                    w->owner, &len, err);
}

// The newest candidates with an outcome, oldest first.
static int set_results(json_t *line, const struct writer *w, struct err *err)
{
    json_t *results = json_array();
    size_t sources = 0;
    int rc = 0;

    json_object_set_new(line, "results", results);
    for (uint64_t id = w->visible; id > 0 && rc == 0; id--) {
        const struct run_state_candidate *candidate = &w->run_state->candidate[id - 1];

        if (json_array_size(results) == REQUEST_RESULTS_MAX) {
            break;
        }
        if (has_outcome(candidate)) {
            json_t *object = describe(w, id);
            size_t len = 0;

            if (sources < REQUEST_SOURCES_MAX) {
                rc = set_blob(object, "source", &candidate->proposed.source, w->read, w->owner,
                              &len, err);
                sources += len;
            }
            json_array_insert_new(results, 0, object);
        }
    }
    return rc;
}

static void set_device(json_t *line, const struct run_state *run_state)
{
    const struct run_session *session = &run_state->session;
    json_t *device = json_object();
    json_t *facts = json_object();

    set_text(device, "class", session->device_class);
    for (size_t i = 0; i < session->device_facts_count; i++) {
        set_number(facts, session->device_facts[i].name, session->device_facts[i].value);
    }
    json_object_set_new(device, "facts", facts);
    json_object_set_new(line, "device", device);
}

int request_write(struct strbuf *out, const struct run_state *run_state, uint64_t visible,
                  const struct proposer_request *wanted, search_text_reader *read, void *owner,
                  struct err *err)
{
    const struct writer w = {run_state, visible, read, owner};
    const struct run_state_candidate *best = run_state_best_before(run_state, visible);
    json_t *line = json_pack("{s:i, s:s, s:I, s:I}", "schema", 1, "search",
                             run_state->started.search ? run_state->started.search : "", "count",
                             (json_int_t)wanted->count, "draw", (json_int_t)wanted->draw);

    set_device(line, run_state);
    int rc = set_problem(line, &w, err);
    rc = rc == 0 ? set_candidate(line, "parent", &w, wanted->parent, err) : rc;
    rc = rc == 0 ? set_candidate(line, "best", &w, best ? best->proposed.candidate : 0, err) : rc;
    rc = rc == 0 ? set_results(line, &w, err) : rc;
    if (rc == 0) {
        char *text = json_dumps(line, JSON_COMPACT);

        strbuf_adds(out, text);
        strbuf_addc(out, '\n');
        free(text);
    }
    json_decref(line);
    return rc;
}
