// `kcast eval` as a table and as JSON. Engine names come from the input file: the table escapes
// what is not printable in them, and JSON gets valid UTF-8.
#include "client/eval/eval_show.h"

#include "client/report/report_text.h"
#include "client/show.h"
#include "common/printable.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void number_text(double value, char out[static 24])
{
    if (isnan(value)) {
        snprintf(out, 24, "-");
    } else {
        snprintf(out, 24, "%.3f", value == 0 ? 0.0 : value); // no "-0.000" for 0
    }
}

// Only the coverage depends on an option, the risk; its row says which risk was asked for.
static void add_meaning(struct strbuf *out, enum score_metric metric, double risk)
{
    strbuf_adds(out, score_meaning(metric));
    if (metric == SCORE_COVERAGE) {
        strbuf_addf(out, " of %g %%", 100 * risk);
    }
    if (score_unit(metric)[0] != '\0') {
        strbuf_addf(out, ", %s", score_unit(metric));
    }
}

static void add_head(struct strbuf *out, const struct eval_set *set)
{
    strbuf_adds(out, "engine ");
    printable_add(out, set->engine, strlen(set->engine));
    strbuf_addf(out, ": %zu forecasts with an outcome (worth %.0f), %zu clusters, %zu without\n",
                set->count, score_effective(set->row, set->count),
                score_clusters(set->row, set->count), set->unmeasured);
}

void eval_table(struct strbuf *out, const struct eval_page *page)
{
    for (size_t i = 0; i < page->eval->set_count; i++) {
        const struct eval_set *set = &page->eval->set[i];
        if (i > 0) {
            strbuf_addc(out, '\n');
        }
        add_head(out, set);
        strbuf_addf(out, "  %-16s %8s  %-18s %7s\n", "measure", "value", "95 % interval", "rows");
        for (enum score_metric m = 0; m < SCORE_COUNT; m++) {
            const struct score_value *value = &set->value[m];
            char middle[24], lo[24], hi[24], both[64];
            number_text(value->value, middle);
            number_text(value->lo, lo);
            number_text(value->hi, hi);
            snprintf(both, sizeof both, isnan(value->lo) ? "-" : "%s to %s", lo, hi);
            strbuf_addf(out, "  %-16s %8s  %-18s %7zu  ", score_name(m), middle, both, value->rows);
            add_meaning(out, m, page->risk);
            strbuf_addf(out, "; %s is better\n", score_higher_is_better(m) ? "more" : "less");
        }
    }
}

static json_t *metrics_json(const struct eval_set *set)
{
    json_t *ret = json_object();
    for (enum score_metric m = 0; m < SCORE_COUNT; m++) {
        json_t *one = json_object();
        json_object_set_new(one, "value", show_number(set->value[m].value));
        json_object_set_new(one, "lo", show_number(set->value[m].lo));
        json_object_set_new(one, "hi", show_number(set->value[m].hi));
        json_object_set_new(one, "rows", json_integer((json_int_t)set->value[m].rows));
        json_object_set_new(ret, score_name(m), one);
    }
    return ret;
}

void eval_json(struct strbuf *out, const struct eval_page *page)
{
    for (size_t i = 0; i < page->eval->set_count; i++) {
        const struct eval_set *set = &page->eval->set[i];
        json_t *object = json_object();
        size_t clusters = score_clusters(set->row, set->count);
        json_object_set_new(object, "engine", text_json(set->engine, strlen(set->engine)));
        json_object_set_new(object, "forecasts", json_integer((json_int_t)set->count));
        json_object_set_new(object, "unmeasured", json_integer((json_int_t)set->unmeasured));
        json_object_set_new(object, "clusters", json_integer((json_int_t)clusters));
        json_object_set_new(object, "effective",
                            show_number(score_effective(set->row, set->count)));
        json_object_set_new(object, "risk", show_number(page->risk));
        json_object_set_new(object, "draws", json_integer((json_int_t)page->draws));
        json_object_set_new(object, "seed", json_integer((json_int_t)page->seed));
        json_object_set_new(object, "metrics", metrics_json(set));
        show_add_line(out, show_with_schema(object));
    }
}
