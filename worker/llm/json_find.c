#include "worker/llm/json_find.h"
#include <string.h>

void json_find_init(struct json_find *find, const char *text)
{
    *find = (struct json_find){.at = text};
}

json_t *json_find_next(struct json_find *find)
{
    // The tries are limited, since a text of nothing but braces would take the square of its
    // length. After the last brace find->at is NULL and stays so.
    while (find->at && find->tries < JSON_FIND_TRIES) {
        find->at = strchr(find->at, '{');
        if (!find->at) {
            break;
        }
        find->tries++;
        json_error_t where;
        json_t *object = json_loads(find->at, JSON_DISABLE_EOF_CHECK, &where);

        if (object) {
            find->at += where.position; // goes on behind the object
            return object;
        }
        find->at++;
    }
    return NULL;
}
