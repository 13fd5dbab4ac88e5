// Numbers and names of the values that parameters have in the files of autotuners.
#include "client/space/import_tuner.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_VALUE_MAX 256 // different values of a parameter that has values other than numbers

struct tuner_scale {
    bool numeric;               // all values are numbers or booleans, and stand for themselves
    char *text[TEXT_VALUE_MAX]; // else: a value becomes its index here; owned
    size_t count;
};

void tuner_add_value(struct strbuf *out, const json_t *value)
{
    if (json_is_string(value)) {
        strbuf_adds(out, json_string_value(value));
    } else if (json_is_boolean(value)) {
        strbuf_adds(out, json_is_true(value) ? "True" : "False");
    } else if (json_is_integer(value)) {
        strbuf_addf(out, "%lld", (long long)json_integer_value(value));
    } else {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        strbuf_adds(out, text ? text : "?");
        free(text);
    }
}

void tuner_add_name(struct strbuf *out, const struct tuner *tuner, const struct tuner_row *row)
{
    for (size_t p = 0; p < tuner->param_count; p++) {
        strbuf_addf(out, "%s%s=", p > 0 ? " " : "", tuner->param[p].name);
        tuner_add_value(out, json_object_get(row->config, tuner->param[p].name));
    }
}

static bool is_numeric(const json_t *value)
{
    return json_is_number(value) || json_is_boolean(value);
}

// Finds the index of a value that is taken as a text. A new value gets the next one.
static int place_of(struct tuner_scale *scale, const json_t *value, double *ret, const char *path,
                    const char *name, struct err *err)
{
    struct strbuf text = STRBUF_INIT;

    tuner_add_value(&text, value);
    size_t i = 0;
    while (i < scale->count && strcmp(scale->text[i], strbuf_text(&text)) != 0) {
        i++;
    }
    if (i == scale->count && i < TEXT_VALUE_MAX) {
        scale->text[scale->count++] = xstrdup(strbuf_text(&text));
    }
    strbuf_release(&text);
    *ret = (double)i;
    return i < TEXT_VALUE_MAX
               ? 0
               : err_set(err, ERR_LIMIT,
                         "%s: parameter \"%s\" has more than %d values, some of which "
                         "are no numbers",
                         path, name, TEXT_VALUE_MAX);
}

int tuner_scale_number(struct tuner_scale *scales, const struct tuner *tuner, size_t param,
                       const json_t *value, double *ret, const char *path, struct err *err)
{
    if (!scales[param].numeric) {
        return place_of(&scales[param], value, ret, path, tuner->param[param].name, err);
    }
    *ret = json_is_boolean(value) ? (double)json_is_true(value) : json_number_value(value);
    return 0;
}

int tuner_scales_make(struct tuner_scale **ret, const struct tuner *tuner, const char *path,
                      struct err *err)
{
    struct tuner_scale *scales = xcalloc(tuner->param_count, sizeof(*scales));

    *ret = scales;
    for (size_t p = 0; p < tuner->param_count; p++) {
        const struct tuner_param *param = &tuner->param[p];
        scales[p].numeric = true;
        for (size_t i = 0; i < tuner->row_count; i++) {
            const json_t *value = json_object_get(tuner->row[i].config, param->name);
            scales[p].numeric = scales[p].numeric && is_numeric(value);
        }
        for (size_t i = 0; i < json_array_size(param->listed) && !scales[p].numeric; i++) {
            double place;
            int rc = place_of(&scales[p], json_array_get(param->listed, i), &place, path,
                              param->name, err);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

void tuner_scales_free(struct tuner_scale *scales, const struct tuner *tuner)
{
    for (size_t p = 0; scales && p < tuner->param_count; p++) {
        for (size_t i = 0; i < scales[p].count; i++) {
            free(scales[p].text[i]);
        }
    }
    free(scales);
}
