// Any bytes as a source: there are few facts, with different names and numbers that a message
// takes.
#include "common/mem.h"
#include "problem/source_facts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fact *fact;
    size_t count = source_facts(data, len, NULL, &fact);

    if (count == 0 || count > SOURCE_FACTS_MAX) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(fact[i].value) || strlen(fact[i].name) > 64) {
            abort();
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(fact[i].name, fact[j].name) == 0) {
                abort();
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        free(fact[i].name);
    }
    free(fact);
    return 0;
}
