#include "executor/fact_list.h"
#include "common/mem.h"
#include <math.h>
#include <string.h>

void fact_list_add(struct fact **list, size_t *count, const char *name, double value)
{
    *list = xrealloc(*list, *count + 1, sizeof(**list));
    (*list)[(*count)++] = (struct fact){.name = xstrdup(name), .value = value};
}

double fact_list_find(const struct fact *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return list[i].value;
        }
    }
    return NAN;
}
