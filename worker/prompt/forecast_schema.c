#include "worker/prompt/forecast_schema.h"

#include "proto/bins.h"
#include "worker/prompt/fine_bins.h"

static json_t *of_type(const char *type)
{
    return json_pack("{s:s}", "type", type);
}

// A text that is one of `count` letters, or `other` where that is not NUL.
static json_t *letter(char first, int count, char other)
{
    json_t *letters = json_array();

    for (int i = 0; i < count; i++) {
        json_array_append_new(letters, json_stringn((const char[]){(char)(first + i)}, 1));
    }
    if (other != '\0') {
        json_array_append_new(letters, json_stringn(&other, 1));
    }
    return json_pack("{s:s, s:o}", "type", "string", "enum", letters);
}

// An object with these properties, which it takes, all of them required.
static json_t *object_of(json_t *properties)
{
    json_t *names = json_array(), *value;
    const char *name;

    json_object_foreach (properties, name, value) {
        json_array_append_new(names, json_string(name));
    }
    return json_pack("{s:s, s:b, s:o, s:o}", "type", "object", "additionalProperties", 0,
                     "required", names, "properties", properties);
}

// An object with a number for each of `count` letters.
static json_t *shares(char first, int count)
{
    json_t *properties = json_object();

    for (int i = 0; i < count; i++) {
        const char name[2] = {(char)(first + i), '\0'};

        json_object_set_new(properties, name, of_type("number"));
    }
    return object_of(properties);
}

json_t *forecast_schema(void)
{
    json_t *properties = json_object();

    json_object_set_new(properties, "analysis", of_type("string"));
    json_object_set_new(properties, "bin",
                        letter(ANSWER_FIRST_LETTER, BIN_COUNT, ANSWER_DEFER_LETTER));
    json_object_set_new(properties, "p", shares(ANSWER_FIRST_LETTER, BIN_COUNT));
    json_object_set_new(properties, "p_correct", of_type("number"));
    json_object_set_new(properties, "best_bin", letter(ANSWER_FIRST_FINE, FINE_BIN_COUNT, '\0'));
    json_object_set_new(properties, "q", shares(ANSWER_FIRST_FINE, FINE_BIN_COUNT));
    return object_of(properties);
}

json_t *ranking_schema(void)
{
    json_t *entry = json_object(), *properties = json_object();

    json_object_set_new(entry, "candidate", of_type("integer"));
    json_object_set_new(entry, "p", of_type("number"));
    json_object_set_new(properties, "analysis", of_type("string"));
    json_object_set_new(properties, "ranking",
                        json_pack("{s:s, s:o}", "type", "array", "items", object_of(entry)));
    return object_of(properties);
}

const struct answer_form answer_form_forecast = {.name = "forecast",
                                                 .tool = "submit_forecast",
                                                 .help = "Hands in the forecast.",
                                                 .schema = forecast_schema,
                                                 .letters = true};
const struct answer_form answer_form_ranking = {.name = "ranking",
                                                .tool = "submit_ranking",
                                                .help = "Hands in the ranking.",
                                                .schema = ranking_schema};
