// Design. A mutant of a baseline in Python is the baseline's file, a dictionary that says which
// mutant it is and what tensors there are, and mutant.py, which is in this program. mutant.py calls
// the baseline whatever its form is, and does with PyTorch what mutant_cuda does with kernels. Its
// names begin with _kc_.
#include "client/problem/mutant_python.h"
#include "client/problem/mutant_cuda.h"
#include <stdio.h>

// The text of mutant.py.
extern const char mutant_python_text[];
__asm__(".section .rodata\n"
        "mutant_python_text:\n"
        ".incbin \"client/problem/mutant.py\"\n"
        ".byte 0\n"
        ".previous\n");

static const char *const direction_names[] = {
    [DIRECTION_IN] = "in", [DIRECTION_OUT] = "out", [DIRECTION_INOUT] = "inout"};

static const char *truth(bool value)
{
    return value ? "True" : "False";
}

static void add_tensor(const struct problem *problem, size_t index, bool first, struct strbuf *out)
{
    const struct tensor *tensor = &problem->tensor[index];
    size_t source = mutant_copy_source(problem, index);

    source = source < problem->tensor_count ? source : index;
    strbuf_addf(out, "    {\"name\": \"%s\", \"direction\": \"%s\", \"source\": \"%s\",\n",
                tensor->name, direction_names[tensor->direction], problem->tensor[source].name);
    strbuf_addf(out, "     \"first\": %s, \"sorted\": %s, \"wide\": %s, \"percent\": %s},\n",
                truth(first), truth(tensor->values.distribution == VALUES_SORTED),
                truth(dtype_roundoff(tensor->dtype) < dtype_roundoff(DTYPE_BF16)),
                truth(mutant_percent_shows(tensor)));
}

void mutant_python_source(enum mutant mutant, const struct problem *problem, const char *baseline,
                          struct strbuf *out)
{
    bool first = true; // no tensor that is only an input has come yet

    strbuf_addf(out, "# Impostor \"%s\": %s.\n%s\n\n", mutant_name(mutant), mutant_what(mutant),
                baseline);
    strbuf_addf(out, "_kc_problem = {\"name\": \"%s\", \"mutant\": \"%s\", \"numbers\": [",
                problem->name, mutant_name(mutant));
    for (size_t i = 0; i < problem->param_count; i++) {
        if (problem->param[i].type == PARAM_F64) {
            strbuf_addf(out, "\"%s\", ", problem->param[i].name);
        }
    }
    strbuf_adds(out, "], \"tensors\": [\n");
    for (size_t i = 0; i < problem->tensor_count; i++) {
        bool input = problem->tensor[i].direction == DIRECTION_IN;
        add_tensor(problem, i, first && input, out);
        first = first && !input;
    }
    strbuf_addf(out, "]}\n%s", mutant_python_text);
}
