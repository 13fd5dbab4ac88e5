#include "client/show.h"

#include "common/printable.h"
#include "proto/status_json.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void show_speedup(const struct estimate *estimate, char *out, size_t size)
{
    if (!estimate || isnan(estimate->log2)) {
        snprintf(out, size, "-");
    } else if (isnan(estimate->lo) || isnan(estimate->hi)) {
        snprintf(out, size, "%.3gx", exp2(estimate->log2));
    } else {
        double lo = exp2(estimate->lo), hi = exp2(estimate->hi);
        // More digits than the interval justifies would mislead.
        int digits = hi - lo < 0.02 ? 3 : hi < 100 ? 2 : 1;
        snprintf(out, size, "%.*fx [%.*f, %.*f]", digits, exp2(estimate->log2), digits, lo, digits,
                 hi);
    }
}

void show_seconds(double seconds, char *out, size_t size)
{
    if (isnan(seconds)) {
        snprintf(out, size, "-");
    } else if (seconds < 0.9995) {
        snprintf(out, size, "%.0f ms", seconds * 1e3);
    } else if (seconds < 99.95) {
        snprintf(out, size, "%.1f s", seconds);
    } else if (seconds < 6000) {
        snprintf(out, size, "%dm%02ds", (int)seconds / 60, (int)seconds % 60);
    } else {
        double minutes = fmin(seconds / 60, 1e8);
        snprintf(out, size, "%dh%02dm", (int)minutes / 60, (int)minutes % 60);
    }
}

void show_ns(double ns, char *out, size_t size)
{
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    if (isnan(ns)) {
        snprintf(out, size, "-");
        return;
    }
    size_t u = 0;
    for (; u < 3 && ns >= 999.5; u++) {
        ns /= 1000;
    }
    snprintf(out, size, "%.3g %s", ns, unit[u]);
}

json_t *show_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *show_text(const char *text)
{
    json_t *value = text ? json_string(text) : NULL;
    return value ? value : json_null();
}

json_t *show_cause(uint64_t cause)
{
    return cause != JOB_CAUSE_NONE ? show_text(job_cause_name(cause)) : json_null();
}

json_t *show_digest(const struct digest *digest)
{
    if (digest_is_zero(digest)) {
        return json_null();
    }
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(digest, hex);
    return json_string(hex);
}

// jansson's integers are signed. Larger values, of results made before seeds had 63 bits, are text.
static json_t *show_u64(uint64_t value)
{
    char text[24];
    if (value <= INT64_MAX) {
        return json_integer((json_int_t)value);
    }
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return json_string(text);
}

json_t *show_fact(double value)
{
    // Every whole number up to here is exact in a double.
    bool whole = isfinite(value) && fabs(value) <= 0x1p53 && value == floor(value);
    return whole ? json_integer((json_int_t)value) : show_number(value);
}

json_t *show_ratio(double log2_value)
{
    return show_number(exp2(log2_value));
}

json_t *show_interval(const struct estimate *estimate)
{
    return !estimate ? json_null()
                     : json_pack("[o, o]", show_ratio(estimate->lo), show_ratio(estimate->hi));
}

static json_t *show_quantiles(const struct quantiles *quantiles)
{
    return !quantiles ? json_null()
                      : json_pack("{s:o, s:o, s:o}", "p10", show_number(quantiles->p10), "p50",
                                  show_number(quantiles->p50), "p90", show_number(quantiles->p90));
}

json_t *show_facts(const struct fact *fact, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(object, fact[i].name, show_fact(fact[i].value));
    }
    return object;
}

static json_t *show_cases(const struct result *result)
{
    json_t *array = json_array();
    for (size_t i = 0; i < result->cases_count; i++) {
        const struct case_result *c = &result->cases[i];
        json_array_append_new(
            array, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "params", show_text(c->params),
                             "speedup", show_ratio(c->speedup ? c->speedup->log2 : NAN), "ci95",
                             show_interval(c->speedup), "weight", show_number(c->weight),
                             "baseline_ns", show_quantiles(c->baseline_ns), "candidate_ns",
                             show_quantiles(c->candidate_ns)));
    }
    return array;
}

json_t *show_accounts(const struct accounts *a)
{
    return !a ? json_null()
              : json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "queue",
                          show_number(a->queue), "compile", show_number(a->compile), "start",
                          show_number(a->start), "inputs", show_number(a->inputs), "verify",
                          show_number(a->verify), "time", show_number(a->time), "held",
                          show_number(a->held), "wait", show_number(a->wait));
}

json_t *show_result(const struct result *result)
{
    const struct estimate *speedup = verdict_is_ratio(result->verdict) ? result->speedup : NULL;
    double log2_value = speedup ? speedup->log2 : NAN;
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, "
                     "s:o, s:b, s:b, s:o, s:o}",                                       //
                     "digest", show_digest(&result->candidate),                        //
                     "device", show_text(result->device),                              //
                     "class", show_text(result->device_class),                         //
                     "verdict", verdict_name(result->verdict),                         //
                     "reason", show_text(result->reason),                              //
                     "speedup", show_ratio(log2_value),                                //
                     "ci95", show_interval(speedup),                                   //
                     "log2_speedup", show_number(log2_value),                          //
                     "baseline_ns", show_quantiles(result->baseline_ns),               //
                     "candidate_ns", show_quantiles(result->candidate_ns),             //
                     "cases", show_cases(result),                                      //
                     "launches", (json_int_t)result->launches,                         //
                     "max_error", show_number(result->max_error),                      //
                     "error_bound", show_number(result->error_bound),                  //
                     "seconds", show_accounts(result->seconds),                        //
                     "trust", show_text(result->trust),                                //
                     "unsealed", (int)result->unsealed,                                //
                     "cached", (int)result->cached,                                    //
                     "seed", result->seed == 0 ? json_null() : show_u64(result->seed), //
                     "conditions", show_facts(result->conditions, result->conditions_count));
}

void show_add_line(struct strbuf *out, json_t *object)
{
    char *line = json_dumps(object, JSON_COMPACT);
    printable_add_json(out, line ? line : "{}", line ? strlen(line) : 2);
    strbuf_addc(out, '\n');
    free(line);
    json_decref(object);
}

json_t *show_error(const struct err *err)
{
    return json_pack("{s:s, s:i, s:o}", "name", err_name((int)err->code), "exit_code",
                     err_exit((int)err->code), "text", show_text(err->text));
}

json_t *show_with_schema(json_t *object)
{
    json_t *whole = json_pack("{s:i}", "schema", JSON_SCHEMA);
    json_object_update(whole, object); // keeps the order of keys
    json_decref(object);
    return whole;
}

void show_print(json_t *object)
{
    object = show_with_schema(object);
    char *line = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (line) {
        struct strbuf shown = STRBUF_INIT;

        printable_add_json(&shown, line, strlen(line));
        strbuf_addc(&shown, '\n');
        (void)fwrite(strbuf_text(&shown), 1, shown.len, stdout);
        strbuf_release(&shown);
    }
    free(line);
    json_decref(object);
}
