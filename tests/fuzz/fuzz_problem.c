// Arbitrary bytes as problem.json. An accepted problem has cases that evaluate within the limits,
// weights with the sum 1, hidden shapes inside their ranges, and generated C whose parentheses
// balance and whose call has as many arguments as its prototype. Each of its further distributions
// has a check case.
#include "problem/problem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void check_case(const struct problem *problem, const struct shape_case *shape)
{
    double flops = 0.0, bytes = 0.0;

    for (size_t i = 0; i < problem->tensor_count; i++) {
        size_t elements = 0, last = 0;
        require(problem_elements(problem, i, shape, &elements, NULL) == 0);
        require(problem_last_extent(problem, i, shape, &last, NULL) == 0);
        require(elements >= 1 &&
                elements * dtype_size(problem->tensor[i].dtype) <= PROBLEM_TENSOR_BYTES_MAX);
        require(last >= 1 && elements % last == 0);
    }
    require(problem_work(problem, shape, &flops, &bytes, NULL) == 0 && flops >= 0.0 &&
            bytes >= 0.0);
    struct strbuf name = STRBUF_INIT;
    problem_case_name(problem, shape, &name);
    require(!strchr(strbuf_text(&name), '\n'));
    strbuf_release(&name);
}

static size_t count_of(const char *text, size_t len, char c)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        count += text[i] == c;
    }
    return count;
}

static void check_code(const struct problem *problem, bool reference)
{
    struct strbuf header = STRBUF_INIT, glue = STRBUF_INIT;

    problem_header(problem, reference, &header);
    problem_glue(problem, reference, &glue);
    require(memcmp(strbuf_text(&glue), strbuf_text(&header), header.len) == 0);
    const char *text = strbuf_text(&glue), *body = strchr(text, '{');
    int depth = 0;
    for (size_t i = 0; i < glue.len; i++) {
        depth += (text[i] == '(') - (text[i] == ')');
        require(depth >= 0 && (text[i] == '\n' || (unsigned char)text[i] >= ' '));
    }
    require(depth == 0 && count_of(text, glue.len, '{') == 1 && count_of(text, glue.len, '}') == 1);
    require(count_of(text, header.len, ',') == count_of(body, strlen(body), ','));
    strbuf_release(&header);
    strbuf_release(&glue);
}

static void check_values(const struct problem *problem, const struct tensor *tensor)
{
    struct strbuf text = STRBUF_INIT;

    require(tensor->also_count <= problem->check_count && tensor->also_count <= PROBLEM_ALSO_MAX);
    require(tensor->also_count == 0 || tensor->direction != DIRECTION_OUT);
    for (size_t i = 0; i < tensor->also_count; i++) {
        values_text(&tensor->also[i], &text);
    }
    require(!strchr(strbuf_text(&text), '\n'));
    strbuf_release(&text);
}

static void check_problem(const struct problem *problem)
{
    for (size_t i = 0; i < problem->tensor_count; i++) {
        check_values(problem, &problem->tensor[i]);
    }
    require(problem->check_count >= 1 && problem->bench_count >= 1 && problem->tensor_count >= 1);
    for (size_t i = 0; i < problem->check_count; i++) {
        check_case(problem, &problem->check[i]);
    }
    double sum = 0.0;
    for (size_t i = 0; i < problem->bench_count; i++) {
        check_case(problem, &problem->bench[i]);
        sum += problem->bench[i].weight;
    }
    require(fabs(sum - 1.0) < 1e-9);
    struct shape_case hidden[PROBLEM_HIDDEN_CASES];
    size_t count = problem_hidden_cases(problem, 12345, hidden);
    require(count == 0 || problem->has_hidden);
    for (size_t i = 0; i < count; i++) {
        check_case(problem, &hidden[i]);
        for (size_t j = 0; j < problem->param_count; j++) {
            const struct hidden_range *range = &problem->hidden[j];
            if (problem->param[j].type == PARAM_INT) {
                require(hidden[i].i[j] >= range->min && hidden[i].i[j] <= range->max &&
                        hidden[i].i[j] % range->multiple == 0);
            }
        }
    }
    require(problem->cuda == (!problem->entry));
    if (!problem->cuda) {
        check_code(problem, false);
        check_code(problem, true);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    int rc = problem_parse(&problem, (const char *)data, size, "p.json", &err);

    if (rc == 0) {
        check_problem(problem);
    } else {
        require(rc == err.code && strncmp(err.text, "p.json:", 7) == 0 && !strchr(err.text, '\n'));
    }
    problem_free(problem);
    return 0;
}
