#include "client/space/space_json.h"
#include "client/report/report_text.h"
#include "client/show.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The interval as ratios; null when there is none.
static json_t *interval_of(const struct estimate *estimate)
{
    return estimate && estimate->blocks > 0 ? show_interval(estimate) : json_null();
}

void space_json_candidate(struct strbuf *out, const struct space *space, size_t i)
{
    const struct space_candidate *c = &space->candidate[i];
    const struct result *result = c->record ? c->record : c->result;
    uint64_t verdict = result ? result->verdict : c->compiled->verdict;
    const char *reason = result ? result->reason : c->compiled->reason;
    const struct estimate *speedup = isnan(space_log2(c)) ? NULL : result->speedup;
    json_t *object = json_object();

    json_object_set_new(object, "candidate", json_integer((json_int_t)i + 1));
    json_object_set_new(object, "problem", show_text(space->head.problem));
    json_object_set_new(object, "device_class", show_text(space->head.device_class));
    json_object_set_new(object, "name", show_text(c->name));
    json_object_set_new(object, "params", show_facts(c->params, c->params_count));
    json_object_set_new(object, "source", show_digest(&c->digest));
    json_object_set_new(object, "object",
                        c->compiled ? show_digest(&c->compiled->object) : json_null());
    json_object_set_new(object, "verdict", show_text(verdict_name(verdict)));
    json_object_set_new(object, "reason", show_text(reason));
    json_object_set_new(object, "speedup", show_ratio(space_log2(c)));
    json_object_set_new(object, "log2_speedup", show_number(space_log2(c)));
    json_object_set_new(object, "ci95", interval_of(speedup));
    json_object_set_new(object, "replicated", json_boolean(c->record));
    json_object_set_new(object, "seconds", show_accounts(c->result ? c->result->seconds : NULL));
    json_object_set_new(object, "record_seconds",
                        show_accounts(c->record ? c->record->seconds : NULL));
    json_object_set_new(object, "compile_seconds",
                        show_number(c->compiled ? c->compiled->seconds : NAN));
    json_object_set_new(object, "features",
                        c->compiled ? show_facts(c->compiled->features, c->compiled->features_count)
                                    : json_object());
    show_add_line(out, show_with_schema(object));
}

int space_json_label(double log2_speedup)
{
    double bin = floor(2 * log2_speedup) + 4;

    return (int)fmin(fmax(bin, 1), 8);
}

void space_json_pair(struct strbuf *out, const struct space *space, size_t i,
                     const struct bytes *anchor, const struct strbuf *source)
{
    const struct space_candidate *c = &space->candidate[i];
    double y = space_log2(c);
    json_t *object = json_object();

    json_object_set_new(object, "comparison_id", show_text(c->name));
    json_object_set_new(object, "pack", show_text(space->head.problem));
    json_object_set_new(object, "anchor_code", text_json((const char *)anchor->data, anchor->len));
    json_object_set_new(object, "candidate_code", text_json(strbuf_text(source), source->len));
    json_object_set_new(object, "hardware", show_text(space->head.device_class));
    json_object_set_new(object, "aggregated_speedup", show_ratio(y));
    json_object_set_new(object, "true_bin", json_integer(space_json_label(y)));
    json_object_set_new(object, "source_id", show_digest(&c->digest));
    json_object_set_new(object, "source_search", show_text("kernelcast"));
    json_object_set_new(object, "internal_experiment", show_text(space->head.origin));
    show_add_line(out, object);
}
