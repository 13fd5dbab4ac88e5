// Finds JSON objects inside other text: behind a model's reasoning, in code fences, in markup.
// Called by the readers of answers.
#ifndef WORKER_LLM_JSON_FIND_H
#define WORKER_LLM_JSON_FIND_H

#include <jansson.h>
#include <stddef.h>

#define JSON_FIND_TRIES 256 // opening braces that are tried in one text

struct json_find {
    const char *at; // where the search goes on
    size_t tries;
};

void json_find_init(struct json_find *find, const char *text); // text outlives find
// The next outermost object, which the caller releases with json_decref; NULL when there is none
// left.
json_t *json_find_next(struct json_find *find);

#endif
