// Makes a space of what an autotuner measured.
//
// Design. Times become log2 speedups over one of the configurations, the baseline. Where single
// launches were recorded, the speedup has an interval: Welch's interval for the difference of the
// means of log2 times (Biometrika 34, 1947). It takes the launches as independent, as the tuner
// does.
#include "client/report/report_text.h"
#include "client/space/import_tuner.h"
#include "client/space/space_import.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/stats.h"
#include "common/strbuf.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 1024 // of a candidate
#define PROBLEM_MAX_BYTES 64
#define DEVICE_MAX_BYTES 256
#define NS_PER_MS 1e6

struct maker {
    const struct tuner *tuner;
    const char *path;
    struct tuner_scale *scales; // one for each parameter; owned
    size_t baseline;            // index of its row
    size_t correct;             // number of correct rows
    struct space space;
};

// ---- the baseline ----

static int by_time(const void *a, const void *b)
{
    const struct tuner_row *const *left = a, *const *right = b;
    double x = (*left)->time, y = (*right)->time;

    return x != y ? (x > y) - (x < y) : (*left > *right) - (*left < *right);
}

static int median_row(struct maker *m, struct err *err)
{
    const struct tuner_row **sorted = xcalloc(m->tuner->row_count, sizeof(*sorted));

    for (size_t i = 0; i < m->tuner->row_count; i++) {
        if (m->tuner->row[i].verdict == VERDICT_NONE) {
            sorted[m->correct++] = &m->tuner->row[i];
        }
    }
    if (m->correct > 0) {
        qsort(sorted, m->correct, sizeof(*sorted), by_time);
        m->baseline = (size_t)(sorted[(m->correct - 1) / 2] - m->tuner->row);
    }
    free(sorted);
    return m->correct > 0 ? 0
                          : err_set(err, ERR_INVALID,
                                    "%s: no configuration is correct, so there is nothing to "
                                    "compare with",
                                    m->path);
}

// Whether the row has the value that text[0 .. len) names as "NAME=VALUE".
static bool has_value(const struct tuner *tuner, const struct tuner_row *row, const char *text,
                      size_t len)
{
    bool same = false;

    for (size_t p = 0; p < tuner->param_count && !same; p++) {
        struct strbuf here = STRBUF_INIT;
        strbuf_addf(&here, "%s=", tuner->param[p].name);
        tuner_add_value(&here, json_object_get(row->config, tuner->param[p].name));
        same = here.len == len && memcmp(here.data, text, len) == 0;
        strbuf_release(&here);
    }
    return same;
}

static bool is_named(const struct tuner *tuner, const struct tuner_row *row, const char *wanted)
{
    bool ret = row->verdict == VERDICT_NONE;

    for (const char *at = wanted; ret; at++) {
        size_t len = strcspn(at, ",");
        ret = has_value(tuner, row, at, len);
        at += len;
        if (*at == '\0') {
            break;
        }
    }
    return ret;
}

static int named_row(struct maker *m, const char *wanted, struct err *err)
{
    size_t found = 0;

    for (size_t i = 0; i < m->tuner->row_count; i++) {
        if (is_named(m->tuner, &m->tuner->row[i], wanted)) {
            m->baseline = i;
            found++;
        }
    }
    if (found == 1) {
        return 0;
    }
    return found == 0 ? err_set(err, ERR_INVALID, "%s: no correct configuration has %.200s",
                                m->path, wanted)
                      : err_set(err, ERR_INVALID,
                                "%s: %zu correct configurations have %.200s; name more parameters",
                                m->path, found, wanted);
}

// ---- candidates ----

static struct quantiles *quantiles_of(const struct tuner_row *row)
{
    struct quantiles *ret = xmalloc(sizeof(*ret));
    size_t count = row->times_count;
    double *sorted = xcalloc(count + 1, sizeof(*sorted));

    message_init(&quantiles_message, ret);
    ret->p50 = row->time * NS_PER_MS;
    if (count > 1) {
        memcpy(sorted, row->times, count * sizeof(*sorted));
        stats_sort(sorted, count);
        ret->p10 = stats_quantile(sorted, count, 0.1) * NS_PER_MS;
        ret->p50 = stats_quantile(sorted, count, 0.5) * NS_PER_MS;
        ret->p90 = stats_quantile(sorted, count, 0.9) * NS_PER_MS;
    }
    free(sorted);
    return ret;
}

// The squared standard error of the mean of log2 times.
static double squared_error(const struct tuner_row *row)
{
    double *y = xcalloc(row->times_count + 1, sizeof(*y));

    for (size_t i = 0; i < row->times_count; i++) {
        y[i] = log2(row->times[i]);
    }
    double square = stats_variance(y, row->times_count) / (double)row->times_count;
    free(y);
    return square;
}

// Half of the 95 % interval of the difference of the mean log2 times; 0 when it is not known.
static double half_width(const struct tuner_row *a, const struct tuner_row *b)
{
    if (a->times_count < 2 || b->times_count < 2) {
        return 0;
    }
    double square_a = squared_error(a), square_b = squared_error(b);
    double sum = square_a + square_b;
    double degrees = sum * sum /
                     (square_a * square_a / (double)(a->times_count - 1) +
                      square_b * square_b / (double)(b->times_count - 1));
    return sum > 0 && degrees > 0 ? stats_t_quantile(0.975, degrees) * sqrt(sum) : 0;
}

static struct estimate *estimate_of(const struct maker *m, const struct tuner_row *row)
{
    const struct tuner_row *base = &m->tuner->row[m->baseline];
    struct estimate *ret = xmalloc(sizeof(*ret));
    double y = log2(base->time / row->time), half = row == base ? 0 : half_width(base, row);
    bool known = row->times_count > 1 && base->times_count > 1;

    *ret = (struct estimate){y, y - half, y + half, known ? row->times_count : 0};
    return ret;
}

// Whether all that is known of what measuring took is one launch.
static bool costs_one_launch(const struct tuner_row *row)
{
    return !isnan(row->time) && isnan(row->benchmark) && row->times_count < 2;
}

// The seconds that the configuration took. On the device it took verification and benchmark, as far
// as these are known.
static struct accounts *accounts_of(const struct tuner_row *row)
{
    struct accounts *ret = xmalloc(sizeof(*ret));
    double launches = 0, time = row->benchmark;

    message_init(&accounts_message, ret);
    for (size_t i = 0; i < row->times_count; i++) {
        launches += row->times[i];
    }
    if (isnan(time)) {
        time = row->times_count > 0 ? launches : row->time;
    }
    ret->compile = row->compile / 1e3;
    ret->verify = row->verify / 1e3;
    ret->time = time / 1e3;
    ret->held = ((isnan(row->verify) ? 0 : row->verify) + (isnan(time) ? 0 : time)) / 1e3;
    return ret;
}

static struct result *result_of(const struct maker *m, const struct tuner_row *row)
{
    struct result *ret = xmalloc(sizeof(*ret));

    message_init(&result_message, ret);
    ret->seconds = accounts_of(row);
    if (row->verdict != VERDICT_NONE) {
        ret->verdict = row->verdict;
        ret->reason = xasprintf("%s: %s", m->tuner->tool, row->reason);
        return ret;
    }
    ret->speedup = estimate_of(m, row);
    ret->verdict = ret->speedup->lo > 0                   ? VERDICT_FASTER
                   : ret->speedup->hi < 0                 ? VERDICT_SLOWER
                   : ret->speedup->lo == ret->speedup->hi ? VERDICT_EQUIVALENT
                                                          : VERDICT_INCONCLUSIVE;
    ret->baseline_ns = quantiles_of(&m->tuner->row[m->baseline]);
    ret->candidate_ns = quantiles_of(row);
    ret->launches = row->times_count;
    return ret;
}

static struct compiled *compiled_of(const struct maker *m, const struct tuner_row *row)
{
    struct compiled *ret = xmalloc(sizeof(*ret));

    message_init(&compiled_message, ret);
    ret->seconds = row->compile / 1e3;
    if (row->verdict == VERDICT_COMPILE_ERROR) {
        ret->verdict = row->verdict;
        ret->reason = xasprintf("%s: %s", m->tuner->tool, row->reason);
    }
    return ret;
}

static int add_candidate(struct maker *m, const struct tuner_row *row, struct err *err)
{
    struct space_candidate *c = &m->space.candidate[m->space.head.candidates++];
    size_t count = m->tuner->param_count;
    struct strbuf name;

    strbuf_init(&name, NAME_MAX_BYTES);
    message_init(&space_candidate_message, c);
    tuner_add_name(&name, m->tuner, row);
    int rc = 0;
    if (name.truncated) {
        rc = err_set(err, ERR_LIMIT, "%s: the values of a configuration have more than %d bytes",
                     m->path, NAME_MAX_BYTES);
    }
    c->name = strbuf_detach(&name);
    c->compiled = compiled_of(m, row);
    c->params = xcalloc(count, sizeof(*c->params));
    for (size_t p = 0; p < count && rc == 0; p++) {
        struct fact *fact = &c->params[c->params_count++];
        fact->name = xstrdup(m->tuner->param[p].name);
        rc = tuner_scale_number(m->scales, m->tuner, p, json_object_get(row->config, fact->name),
                                &fact->value, m->path, err);
    }
    if (row->verdict != VERDICT_COMPILE_ERROR) {
        c->result = result_of(m, row);
    }
    return rc;
}

// ---- the head ----

// Chooses the name of the problem or device: the file's if it has one, else the wanted one. A
// wanted name that differs from the file's is an error.
static int choose(char **ret, const char *says, const char *wanted, const char *option, size_t max,
                  const char *path, struct err *err)
{
    const char *chosen = says ? says : wanted;

    if (says && wanted && strcmp(says, wanted) != 0) {
        return err_set(err, ERR_INVALID, "%s: it is of \"%.200s\", not of --%s \"%.200s\"", path,
                       says, option, wanted);
    }
    if (!chosen) {
        return err_set(err, ERR_INVALID, "%s: it does not name its %s; say it with --%s", path,
                       option, option);
    }
    if (strlen(chosen) > max) {
        return err_set(err, ERR_LIMIT, "%s: the name of its %s has more than %zu bytes", path,
                       option, max);
    }
    *ret = xstrdup(chosen);
    return 0;
}

static uint64_t count_launch_costs(const struct tuner *tuner)
{
    uint64_t count = 0;

    for (size_t i = 0; i < tuner->row_count; i++) {
        count += costs_one_launch(&tuner->row[i]);
    }
    return count;
}

static int make_head(struct maker *m, const struct space_import *how, struct err *err)
{
    struct space_head *head = &m->space.head;
    const struct tuner *tuner = m->tuner;
    struct strbuf origin, clean = STRBUF_INIT;

    message_init(&space_head_message, head);
    head->format = SPACE_FORMAT;
    int rc = choose(&head->problem, tuner->kernel, how->problem, "problem", PROBLEM_MAX_BYTES,
                    m->path, err);
    if (rc != 0) {
        return rc;
    }
    rc = choose(&head->device_class, tuner->device, how->device, "device", DEVICE_MAX_BYTES,
                m->path, err);
    if (rc != 0) {
        return rc;
    }
    strbuf_init(&origin, 2000);
    strbuf_addf(&origin, "%s %s %.200s: %zu configurations, %zu correct; speedups over %s",
                tuner->tool, tuner->format, file_base_name(m->path), tuner->row_count, m->correct,
                how->baseline ? "the chosen " : "the correct one of median time, ");
    tuner_add_name(&origin, tuner, &tuner->row[m->baseline]);
    head->launch_costs = count_launch_costs(tuner);
    if (head->launch_costs > 0) {
        strbuf_addf(&origin, "; the costs of %llu of them are those of one launch",
                    (unsigned long long)head->launch_costs);
    }
    if (tuner->problem_size) {
        strbuf_adds(&origin, "; problem size ");
        tuner_add_value(&origin, tuner->problem_size);
    }
    // The text may have been cut within a character.
    text_add_utf8(&clean, strbuf_text(&origin), origin.len);
    strbuf_release(&origin);
    head->origin = strbuf_detach(&clean);
    return 0;
}

static int make_space(struct maker *m, const struct space_import *how, struct err *err)
{
    int rc = median_row(m, err);
    if (rc != 0) {
        return rc;
    }
    if (how->baseline) {
        rc = named_row(m, how->baseline, err);
    }
    if (rc != 0) {
        return rc;
    }
    rc = tuner_scales_make(&m->scales, m->tuner, m->path, err);
    if (rc != 0) {
        return rc;
    }
    rc = make_head(m, how, err);
    if (rc != 0) {
        return rc;
    }
    m->space.candidate = xcalloc(m->tuner->row_count, sizeof(*m->space.candidate));
    for (size_t i = 0; i < m->tuner->row_count; i++) {
        rc = add_candidate(m, &m->tuner->row[i], err);
        if (rc != 0) {
            return rc;
        }
    }
    return space_check(&m->space, m->path, err);
}

// Makes a space of a tuner that it releases.
static int import(struct space *ret, struct tuner *tuner, const char *path,
                  const struct space_import *how, struct err *err)
{
    struct maker m = {.tuner = tuner, .path = path};
    int rc = make_space(&m, how, err);

    tuner_scales_free(m.scales, tuner);
    tuner_release(tuner);
    if (rc != 0) {
        space_release(&m.space);
        return rc;
    }
    *ret = m.space;
    return 0;
}

int space_import_kernel_tuner(struct space *ret, const void *data, size_t len, const char *path,
                              const struct space_import *how, struct err *err)
{
    struct tuner tuner;
    int rc = tuner_read(&tuner, data, len, path, err);

    return rc == 0 ? import(ret, &tuner, path, how, err) : rc;
}

int space_import_ktt(struct space *ret, const void *data, size_t len, const char *path,
                     const struct space_import *how, struct err *err)
{
    struct tuner tuner;
    int rc = tuner_read_ktt(&tuner, data, len, path, err);

    return rc == 0 ? import(ret, &tuner, path, how, err) : rc;
}
