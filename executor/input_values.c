#include "executor/input_values.h"
#include "common/strbuf.h"

#define ALSO_CONTENT (MEASURE_CONTENTS - 1) // the content from further distributions

static bool is_further(const struct tensor *tensor, uint64_t content)
{
    return content == ALSO_CONTENT && tensor->also_count > 0;
}

const struct values *input_values(const struct tensor *tensor, uint64_t seed, uint64_t case_index,
                                  uint64_t content)
{
    uint64_t count = tensor->also_count;

    return is_further(tensor, content) ? &tensor->also[(seed % count + case_index % count) % count]
                                       : &tensor->values;
}

bool input_values_are_further(const struct problem *problem, uint64_t content)
{
    bool further = false;

    for (size_t t = 0; t < problem->tensor_count; t++) {
        further = further || is_further(&problem->tensor[t], content);
    }
    return further;
}

char *input_values_where(const struct problem *problem, const struct measure_case *of,
                         uint64_t seed, uint64_t content)
{
    struct strbuf out = STRBUF_INIT;
    const char *before = " with ";

    strbuf_adds(&out, of->name);
    for (size_t t = 0; t < problem->tensor_count; t++) {
        const struct tensor *tensor = &problem->tensor[t];

        if (is_further(tensor, content)) {
            strbuf_addf(&out, "%s%s from ", before, tensor->name);
            values_text(input_values(tensor, seed, of->index, content), &out);
            before = ", ";
        }
    }
    return strbuf_detach(&out);
}
