// Generates C text from a problem: the prototype that is put in front of candidate, baseline and
// reference, and the glue through which a program calls any of them without knowing their
// signature. The names in a prototype are the problem's own. problem.c made sure that they are
// different and mean nothing else. The names in the glue begin with kcast_, which no problem may
// use. The glue repeats the prototype, so that it compiles by itself.
#include "problem/problem.h"

// A list of arguments that is being written.
struct argument_list {
    struct strbuf *out;
    size_t count; // of arguments written
};

static void separate(struct argument_list *list)
{
    if (list->count++ > 0) {
        strbuf_adds(list->out, ", ");
    }
}

// Adds the arguments of the reference for one tensor: its input, its expected value, its error
// scale.
static void add_reference_tensor(struct argument_list *list, const struct tensor *tensor)
{
    if (tensor->direction != DIRECTION_OUT) {
        separate(list);
        strbuf_addf(list->out, "const %s *%s", dtype_c_name(tensor->dtype), tensor->name);
    }
    if (tensor->direction == DIRECTION_IN) {
        return;
    }
    separate(list);
    strbuf_addf(list->out, "double *%s%s", tensor->name,
                tensor->direction == DIRECTION_INOUT ? "_out" : "");
    separate(list);
    strbuf_addf(list->out, "double *%s_scale", tensor->name);
}

// Adds the prototype, such as "void sgemm(const float *A, float *C, int64_t M);".
static void add_prototype(const struct problem *problem, bool reference, struct strbuf *out)
{
    struct argument_list list = {.out = out};
    strbuf_addf(out, "void %s(", reference ? "reference" : problem->entry);
    for (size_t i = 0; i < problem->tensor_count; i++) {
        const struct tensor *tensor = &problem->tensor[i];
        if (reference) {
            add_reference_tensor(&list, tensor);
            continue;
        }
        separate(&list);
        strbuf_addf(out, "%s%s *%s", tensor->direction == DIRECTION_IN ? "const " : "",
                    dtype_c_name(tensor->dtype), tensor->name);
    }
    for (size_t i = 0; i < problem->param_count; i++) {
        separate(&list);
        strbuf_addf(out, "%s %s", problem->param[i].type == PARAM_INT ? "int64_t" : "double",
                    problem->param[i].name);
    }
    strbuf_adds(out, ");\n");
}

void problem_header(const struct problem *problem, bool reference, struct strbuf *out)
{
    strbuf_adds(out, "#include <stdint.h>\n");
    add_prototype(problem, reference, out);
}

// The number of pointer arguments that a tensor becomes.
static size_t pointer_count(const struct tensor *tensor, bool reference)
{
    if (!reference || tensor->direction == DIRECTION_IN) {
        return 1;
    }
    return tensor->direction == DIRECTION_OUT ? 2 : 3;
}

void problem_glue(const struct problem *problem, bool reference, struct strbuf *out)
{
    static const char signature[] =
        "void kcast_entry(void *const *kcast_pointer, const int64_t *kcast_integer, "
        "const double *kcast_scalar)";
    struct argument_list list = {.out = out};
    problem_header(problem, reference, out);
    strbuf_addf(out, "%s;\n%s\n{\n    (void)kcast_integer;\n    (void)kcast_scalar;\n    %s(",
                signature, signature, reference ? "reference" : problem->entry);
    size_t pointers = 0;
    for (size_t i = 0; i < problem->tensor_count; i++) {
        pointers += pointer_count(&problem->tensor[i], reference);
    }
    for (size_t i = 0; i < pointers; i++) {
        separate(&list);
        strbuf_addf(out, "kcast_pointer[%zu]", i);
    }
    for (size_t i = 0; i < problem->param_count; i++) {
        separate(&list);
        strbuf_addf(out, "%s[%zu]",
                    problem->param[i].type == PARAM_INT ? "kcast_integer" : "kcast_scalar", i);
    }
    strbuf_adds(out, ");\n}\n");
}
