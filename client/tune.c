#include "client/tune.h"

#include "client/generator_list.h"
#include "client/run.h"
#include "client/search.h"
#include "common/file.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_BYTES 80 // of the case in a file's name
#define NUMBER_MAX 10000  // runs of one search, one after another
#define KEY_DIGITS 12

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

// Everything that decides the search.
static void search_key(const struct tune *tune, const struct problem_dir *narrowed,
                       char out[static DIGEST_HEX_LEN + 1])
{
    const struct search_options *o = tune->options;
    char *options =
        xasprintf("%s %s %.17g %.17g %.17g %s %.17g %.17g %llu %llu %llu %llu %llu %llu %s",
                  o->strategy, o->policy, o->confidence, o->audit, o->share, o->guarantee,
                  o->alpha, o->delta, (unsigned long long)o->budget_ns,
                  (unsigned long long)o->max_time_ns, (unsigned long long)o->measurements,
                  (unsigned long long)o->candidates, (unsigned long long)o->batch,
                  (unsigned long long)o->wide, o->seed != NULL ? o->seed : "drawn");
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

// "RUNS/sgemm-M=256_N=256-0123456789ab", malloc'd.
static char *stem_of(const struct tune *tune, const struct problem_dir *narrowed, size_t bench)
{
    char key[DIGEST_HEX_LEN + 1];
    struct strbuf name;
    strbuf_init(&name, NAME_MAX_BYTES);
    if (bench == TUNE_ALL) {
        strbuf_adds(&name, "all");
    } else {
        problem_case_name(narrowed->problem, &narrowed->problem->bench[0], &name);
    }
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

// The latest run of the search, malloc'd, or NULL; and the path of the next.
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

// Opens a run that was begun before. One that was killed before its first event holds nothing and
// is removed: *ret is then NULL.
static int open_begun(struct run **ret, struct fold *fold, const char *path,
                      const struct problem_dir *narrowed, struct err *err)
{
    const struct digest template =
        digest_of(narrowed->template_source.data, narrowed->template_source.len);
    const struct run_started *started = &fold->started;
    struct run *run = NULL;
    int code = run_open(&run, path, err);
    if (code == 0) {
        code = fold_run(fold, run, err);
    }
    if (code == 0 && fold->last_sequence == 0) {
        run_close(run);
        run = NULL;
        if (unlink(path) != 0) {
            code = err_set(err, ERR_SYSTEM, "%s holds no events; remove it", path);
        }
    } else if (code == 0 && !(digest_equal(&started->problem_json, &narrowed->json_digest) &&
                              digest_equal(&started->reference, &narrowed->reference_digest) &&
                              digest_equal(&started->baseline, &narrowed->baseline_digest) &&
                              digest_equal(&started->template_source, &template))) {
        code =
            err_set(err, ERR_CONFLICT,
                    "%s is a run of something else; move it away, or choose another --runs", path);
    }
    if (code == 0) {
        *ret = run;
        run = NULL;
    }
    run_close(run);
    return code;
}

// ---- one case ----

static int read_entry(struct wisdom_entry **ret, json_t *object, struct err *err)
{
    return wisdom_entry_read(ret, object, "", "", NULL) == 0
               ? 0
               : err_set(err, ERR_INTERNAL, "what was found does not fit into a wisdom file");
}

// Whether the wisdom file has it. *ret_object: a new reference to the entry, or NULL.
static int known(const struct tune *tune, const struct problem *narrowed, json_t **ret_object,
                 struct err *err)
{
    struct wisdom wisdom = {0};
    struct wisdom_entry *like = NULL;
    json_t *object = tune_entry(tune, narrowed, NULL, NULL);
    int code = read_entry(&like, object, err);
    if (code == 0) {
        code = wisdom_read(&wisdom, tune->wisdom, true, err);
    }
    if (code == 0) {
        const struct wisdom_entry *entry = wisdom_find(&wisdom, like);
        *ret_object = entry != NULL ? json_incref(entry->object) : NULL;
    }
    wisdom_entry_free(like);
    wisdom_release(&wisdom);
    json_decref(object);
    return code;
}

static bool any_correct(const struct fold *fold)
{
    for (size_t i = 0; i < fold->candidate_count; i++) {
        const struct result *result = fold->candidate[i].result;
        if (result != NULL && verdict_is_ratio(result->verdict)) {
            return true;
        }
    }
    return false;
}

// Puts what a finished run found into the wisdom file.
static int keep(struct tune_outcome *ret, const struct tune *tune, const struct problem *narrowed,
                const struct fold *fold, struct err *err)
{
    struct wisdom_entry *entry = NULL;
    bool kept = false;
    if (!any_correct(fold)) {
        ret->result = TUNE_NONE;
        return 0;
    }
    json_t *object = tune_entry(tune, narrowed, fold, ret->run);
    int code = read_entry(&entry, object, err);
    if (code == 0) {
        code = wisdom_merge_take(tune->wisdom, entry, &kept, err);
    }
    if (code == 0 && kept) {
        ret->result = TUNE_WORSE;
        code = known(tune, narrowed, &ret->entry, err);
    } else if (code == 0) {
        ret->result = TUNE_TUNED;
        ret->entry = json_incref(object);
    }
    json_decref(object);
    return code;
}

// A run that is not finished goes first; then what is known; then a finished run whose outcome did
// not reach the wisdom file; then a new run.
static int drive(struct tune_outcome *ret, const struct tune *tune,
                 const struct problem_dir *narrowed, char *begun, char **next, struct err *err)
{
    struct fold fold;
    struct run *run = NULL;
    int code = 0;
    fold_init(&fold);
    if (begun != NULL) {
        code = open_begun(&run, &fold, begun, narrowed, err);
    }
    if (code == 0 && (run == NULL || fold.finished) && !tune->again) {
        code = known(tune, narrowed->problem, &ret->entry, err);
        if (code == 0 && ret->entry != NULL) {
            ret->result = TUNE_KNOWN;
            goto out;
        }
    }
    ret->resumed = code == 0 && run != NULL && !(fold.finished && tune->again);
    if (code == 0 && !ret->resumed) {
        run_close(run);
        run = NULL;
        fold_release(&fold);
        fold_init(&fold);
        struct generator_list generators;
        generator_list_tunable(&generators, &narrowed->template_source);
        code = search_start(&run, &fold, next, &generators, tune->options, narrowed, err);
        generator_list_release(&generators);
    }
    if (code == 0) {
        ret->run = xstrdup(ret->resumed ? begun : *next);
    }
    if (code == 0 && !fold.finished) {
        code = search_drive(tune->session, run, &fold, err);
    }
    if (code == 0) {
        code = keep(ret, tune, narrowed->problem, &fold, err);
    }
out:
    run_close(run);
    fold_release(&fold);
    return code;
}

int tune_one(struct tune_outcome *ret, const struct tune *tune, size_t bench, struct err *err)
{
    struct problem_dir narrowed = {0};
    char *stem = NULL, *begun = NULL, *next = NULL;
    *ret = (struct tune_outcome){0};
    int code = tune_narrow(&narrowed, tune->dir, tune->kernel, bench, err);
    if (code == 0) {
        stem = stem_of(tune, &narrowed, bench);
        begun = latest_run(stem, &next);
        code = drive(ret, tune, &narrowed, begun, &next, err);
    }
    free(stem);
    free(begun);
    free(next);
    problem_dir_release(&narrowed);
    return code;
}
