// The table of engines.
#include "worker/engine.h"

#include "common/mem.h"
#include "worker/engine_both.h"
#include "worker/llm/engine_llm.h"
#include "worker/model/engine_static.h"
#include <string.h>

static const struct engine_ops *const engine_table[] = {
    &engine_static,
    &engine_llm,
    &engine_both,
};

const char engine_choices[] = "static|llm|both";

const struct engine_ops *engine_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(engine_table); i++) {
        if (strcmp(engine_table[i]->name, name) == 0) {
            return engine_table[i];
        }
    }
    return NULL;
}
