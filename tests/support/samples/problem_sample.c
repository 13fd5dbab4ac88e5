#include "tests/support/samples/problem_sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const char whole[] =
    "{'name': 'axpy-2', 'title': 'y = a x + y', 'license': 'MIT', 'language': 'c', 'entry': "
    "'axpy',\n"
    " 'params': [{'name': 'M', 'type': 'int'}, {'name': 'a', 'type': 'f64'}, {'name': 'N', 'type': "
    "'int'}],\n"
    " 'tensors': [\n"
    "  {'name': 'x', 'direction': 'in', 'dtype': 'f32', 'shape': ['M', '2*N'],\n"
    "   'values': {'distribution': 'normal', 'mean': 0, 'stddev': 1}},\n"
    "  {'name': 'y', 'direction': 'inout', 'dtype': 'f64', 'shape': ['M'], 'tolerance': 8,\n"
    "   'values': {'distribution': 'uniform', 'low': -1, 'high': 2.5}},\n"
    "  {'name': 'z', 'direction': 'out', 'dtype': 'i32', 'shape': [], 'tolerance': 0}],\n"
    " 'cases': {\n"
    "  'check': [{'M': 17, 'N': 3, 'a': 0.1}, {'M': 1, 'N': 1, 'a': 2}],\n"
    "  'bench': [{'params': {'M': 384, 'N': 5, 'a': 1}, 'weight': 1}, {'params': {'M': 4, 'N': 5, "
    "'a': 1}, 'weight': 3}],\n"
    "  'hidden': {'M': {'min': 1, 'max': 150}, 'N': {'min': 3, 'max': 400, 'multiple': 4}}},\n"
    " 'cache': 'cold', 'work': {'flops': '2*M*N', 'bytes': '4*(M+N)'}}";

char *problem_sample_text(const char *from, const char *to)
{
    const char *at = strstr(whole, from);

    if (!at) {
        fail_msg("the test's problem has no %s", from);
    }
    struct strbuf out = STRBUF_INIT;
    strbuf_add(&out, whole, (size_t)(at - whole));
    strbuf_adds(&out, to);
    strbuf_adds(&out, at + strlen(from));
    for (size_t i = 0; i < out.len; i++) {
        if (out.data[i] == '\'') {
            out.data[i] = '"';
        }
    }
    return strbuf_detach(&out);
}

struct problem *problem_sample_with(const char *from, const char *to)
{
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    char *text = problem_sample_text(from, to);

    if (problem_parse(&problem, text, strlen(text), "p/problem.json", &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(text);
    return problem;
}
