// A search has a stem, which is the path of its run files without number and extension. The latest
// run of the stem is continued if it is unfinished. What a finished run found goes into the wisdom
// file, under its lock, so that several tunings may write to one file.
#include "client/tune/tune.h"

#include "client/propose/generator_list.h"
#include "client/run/run.h"
#include "client/search/job_times.h"
#include "client/search/search.h"
#include "client/session.h"
#include "common/file.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_BYTES 80 // of the case's name in a file name
#define NUMBER_MAX 10000  // run files of one stem
#define KEY_DIGITS 12     // hex digits of the search's key in a file name

const char *tune_result_name(enum tune_result result)
{
    static const char *const names[] = {
#define X(id, name, text) [TUNE_##id] = name,
        TUNE_RESULTS(X)
#undef X
    };
    return names[result];
}

void tune_outcome_release(struct tune_outcome *outcome)
{
    json_decref(outcome->entry);
    free(outcome->run);
    *outcome = (struct tune_outcome){0};
}

// ---- run files ----

// Writes a digest of everything that decides the search.
static void search_key(const struct tune *tune, const struct problem_dir *narrowed,
                       char out[static DIGEST_HEX_LEN + 1])
{
    const struct search_options *o = tune->options;
    char *options = xasprintf(
        "%s %s %.17g %.17g %.17g %s %.17g %.17g %llu %llu %llu %llu %llu %llu %s", o->strategy,
        o->policy, search_confidence(o), o->audit, o->share, o->guarantee, o->alpha, o->delta,
        (unsigned long long)o->budget_ns, (unsigned long long)o->max_time_ns,
        (unsigned long long)o->measurements, (unsigned long long)o->candidates,
        (unsigned long long)o->batch, (unsigned long long)o->wide, o->seed ? o->seed : "drawn");
    if (o->target > 0) { // run files of before the option keep their names
        char *with_target = xasprintf("%s target %.17g", options, o->target);
        free(options);
        options = with_target;
    }
    if (o->lag != 0) { // likewise
        char *with_lag = xasprintf("%s lag %llu", options, (unsigned long long)o->lag);
        free(options);
        options = with_lag;
    }
    if (o->confidence > 0 || o->weights) { // likewise
        char *with_costs = xasprintf("%s end %.17g weights %s", options, o->confidence,
                                     o->weights ? o->weights : "");
        free(options);
        options = with_costs;
    }
    struct digest_state *state = digest_begin();
    digest_add(state, narrowed->json.data, narrowed->json.len);
    digest_add(state, narrowed->reference.data, narrowed->reference.len);
    digest_add(state, narrowed->baseline.data, narrowed->baseline.len);
    digest_add(state, narrowed->template_source.data, narrowed->template_source.len);
    digest_add_text(state, tune->device_class);
    digest_add_text(state, options);
    struct digest digest = digest_end(state);
    digest_hex(&digest, out);
    free(options);
}

// The stem of the search, such as "RUNS/sgemm-M=256_N=256-0123456789ab"; malloc'd.
static char *stem_of(const struct tune *tune, const struct problem_dir *narrowed, size_t bench)
{
    struct strbuf name;
    strbuf_init(&name, NAME_MAX_BYTES);
    if (bench == TUNE_ALL) {
        strbuf_adds(&name, "all");
    } else {
        problem_case_name(narrowed->problem, &narrowed->problem->bench[0], &name);
    }
    char key[DIGEST_HEX_LEN + 1];
    search_key(tune, narrowed, key);
    char *stem = xasprintf("%s/%s-%s-%.*s", tune->runs, narrowed->problem->name, strbuf_text(&name),
                           KEY_DIGITS, key);
    for (char *p = stem + strlen(tune->runs) + 1; *p != '\0'; p++) {
        *p = *p == ' ' ? '_' : *p;
    }
    strbuf_release(&name);
    return stem;
}

static char *numbered(const char *stem, unsigned number)
{
    return number == 1 ? xasprintf("%s.run", stem) : xasprintf("%s-%u.run", stem, number);
}

// The path of the latest run of the stem, malloc'd, or NULL when there is none. *ret_next is the
// path of the next run, malloc'd.
static char *latest_run(const char *stem, char **ret_next)
{
    char *last = NULL, *next = numbered(stem, 1);
    for (unsigned n = 2; n <= NUMBER_MAX && file_exists(next); n++) {
        free(last);
        last = next;
        next = numbered(stem, n);
    }
    *ret_next = next;
    return last;
}

// Opens a run that was begun before and computes its state. A run that was killed before its first
// event holds nothing and is removed: *ret is then NULL. ERR_CONFLICT when the file is the run of
// another search.
static int open_begun(struct run **ret, struct run_state *run_state, const char *path,
                      const struct problem_dir *narrowed, struct err *err)
{
    const struct digest template =
        digest_of(narrowed->template_source.data, narrowed->template_source.len);
    const struct run_started *started = &run_state->started;
    struct run *run = NULL;
    int rc = run_open(&run, path, err);
    session_warn(run ? run_warning(run) : NULL);
    if (rc == 0) {
        rc = run_state_read(run_state, run, err);
    }
    if (rc == 0 && run_state->last_sequence == 0 && !run_warning(run)) {
        run_close(run);
        run = NULL;
        if (unlink(path) != 0) {
            rc = err_set(err, ERR_SYSTEM, "%s holds no events; remove it", path);
        }
    } else if (rc == 0 && !(digest_equal(&started->problem_json, &narrowed->json_digest) &&
                            digest_equal(&started->reference, &narrowed->reference_digest) &&
                            digest_equal(&started->baseline, &narrowed->baseline_digest) &&
                            digest_equal(&started->template_source, &template))) {
        rc = err_set(err, ERR_CONFLICT,
                     "%s is a run of something else; move it away, or choose another --runs", path);
    }
    if (rc == 0) {
        *ret = run;
        run = NULL;
    }
    run_close(run);
    return rc;
}

// ---- one case ----

static int read_entry(struct wisdom_entry **ret, json_t *object, struct err *err)
{
    return wisdom_entry_read(ret, object, "", "", NULL) == 0
               ? 0
               : err_set(err, ERR_INTERNAL, "what was found does not fit into a wisdom file");
}

// Looks the case up in the wisdom file. *ret_object is a new reference to the entry's object, or
// NULL when there is none.
static int known(const struct tune *tune, const struct problem *narrowed, json_t **ret_object,
                 struct err *err)
{
    struct wisdom wisdom = {0};
    struct wisdom_entry *like = NULL;
    json_t *object = tune_entry(tune, narrowed, NULL, NULL);
    int rc = read_entry(&like, object, err);
    if (rc == 0) {
        rc = wisdom_read(&wisdom, tune->wisdom, true, err);
    }
    if (rc == 0) {
        const struct wisdom_entry *entry = wisdom_find(&wisdom, like);
        *ret_object = entry ? json_incref(entry->object) : NULL;
    }
    wisdom_entry_free(like);
    wisdom_release(&wisdom);
    json_decref(object);
    return rc;
}

static bool any_correct(const struct run_state *run_state)
{
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct result *result = run_state->candidate[i].result;
        if (result && verdict_is_ratio(result->verdict) && result->speedup) {
            return true;
        }
    }
    return false;
}

// Puts what a finished run found into the wisdom file, and sets ret->result and ret->entry.
static int keep(struct tune_outcome *ret, const struct tune *tune, const struct problem *narrowed,
                const struct run_state *run_state, struct err *err)
{
    if (!any_correct(run_state)) {
        ret->result = TUNE_NONE;
        return 0;
    }
    json_t *object = tune_entry(tune, narrowed, run_state, ret->run);
    struct wisdom_entry *entry = NULL;
    int rc = read_entry(&entry, object, err);
    bool kept = false;
    if (rc == 0) {
        rc = wisdom_merge_take(tune->wisdom, entry, &kept, err);
    }
    if (rc == 0 && kept) {
        ret->result = TUNE_WORSE;
        rc = known(tune, narrowed, &ret->entry, err);
    } else if (rc == 0) {
        ret->result = TUNE_TUNED;
        ret->entry = json_incref(object);
    }
    json_decref(object);
    return rc;
}

// Tunes one case. An unfinished run is continued. Otherwise an entry of the wisdom file is the
// outcome. Otherwise a finished run is put into the wisdom file. Otherwise a new run is begun. With
// tune->again only unfinished runs are continued, and nothing else keeps a new run from being
// begun.
static int drive(struct tune_outcome *ret, const struct tune *tune,
                 const struct problem_dir *narrowed, char *begun, char **next, struct err *err)
{
    struct run_state run_state;
    double began_at = job_times_now();
    run_state_init(&run_state);
    struct run *run = NULL;
    int rc = begun ? open_begun(&run, &run_state, begun, narrowed, err) : 0;
    if (rc != 0) {
        goto out;
    }
    if ((!run || run_state.finished) && !tune->again) {
        rc = known(tune, narrowed->problem, &ret->entry, err);
        if (rc != 0) {
            goto out;
        }
        if (ret->entry) {
            ret->result = TUNE_KNOWN;
            goto out;
        }
    }
    ret->resumed = run && !(run_state.finished && tune->again);
    if (!ret->resumed) {
        run_close(run);
        run = NULL;
        run_state_release(&run_state);
        run_state_init(&run_state);
        struct generator_list generators;
        generator_list_tunable(&generators, &narrowed->template_source);
        rc = search_start(&run, &run_state, next, &generators, tune->options, narrowed,
                          tune->capacity, err);
        generator_list_release(&generators);
        if (rc != 0) {
            goto out;
        }
    }
    ret->run = xstrdup(ret->resumed ? begun : *next);
    if (!run_state.finished) {
        rc = search_drive(tune->session, run, &run_state, began_at, NULL, err);
        if (rc != 0) {
            goto out;
        }
    }
    rc = keep(ret, tune, narrowed->problem, &run_state, err);
out:
    run_close(run);
    run_state_release(&run_state);
    return rc;
}

int tune_one(struct tune_outcome *ret, const struct tune *tune, size_t bench, struct err *err)
{
    *ret = (struct tune_outcome){0};
    struct problem_dir narrowed;
    int rc = tune_narrow(&narrowed, tune->dir, tune->kernel, bench, err);
    if (rc != 0) {
        return rc;
    }
    char *stem = stem_of(tune, &narrowed, bench), *next;
    char *begun = latest_run(stem, &next);
    rc = drive(ret, tune, &narrowed, begun, &next, err);
    free(stem);
    free(begun);
    free(next);
    problem_dir_release(&narrowed);
    return rc;
}
