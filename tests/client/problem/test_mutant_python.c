// Mutants of a baseline in Python, read by Python: each has the baseline's text in it, no syntax
// error, and says of itself what the problem says. What they compute needs PyTorch; kcast problem
// check runs them on a GPU (tests/gpu/recorded.sh).
#include "client/problem/mutant.h"
#include "common/mem.h"
#include "problem/candidate_form.h"
#include "tests/support/program.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char problem_text[] =
    "{\"name\": \"p\", \"title\": \"t\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\":"
    "[\"n\", \"n\"], \"values\": {\"distribution\": \"sorted\", \"low\": 0, \"high\": 1}},"
    "{\"name\": \"z\", \"direction\": \"inout\", \"dtype\": \"f64\", \"shape\": [\"n\", \"n\"],"
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}, \"tolerance\": 4},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\", \"n\"],"
    "\"tolerance\": 4}], \"cases\": {\"check\": [{\"n\": 30, \"a\": 2}],"
    "\"bench\": [{\"params\": {\"n\": 200, \"a\": 2.5}, \"weight\": 1}]},"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}";

static const char *const baselines[] = {
    "import torch\n\ndef custom_kernel(data):\n    return data[0]\n",
    "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, z, a):\n"
    "        return x + z\n",
    "import torch\n\ndef p(**known):\n    known['y'].copy_(known['x'])", // without a last newline
};

// Reads every file of its folder as Python, and the dictionary in it.
static const char reader[] =
    "import ast, os, sys\n"
    "for name in sorted(os.listdir(sys.argv[1])):\n"
    "    tree = ast.parse(open(os.path.join(sys.argv[1], name)).read(), name)\n"
    "    compile(tree, name, 'exec')\n" // finds what the grammar allows, such as a return outside
    "    said = [ast.literal_eval(each.value) for each in tree.body if isinstance(each, "
    "ast.Assign)\n"
    "            and getattr(each.targets[0], 'id', '') == '_kc_problem']\n"
    "    assert len(said) == 1, name\n"
    "    said = said[0]\n"
    "    assert said['name'] == 'p' and said['mutant'] == name.split('.')[1], said\n"
    "    assert said['numbers'] == ['a'], said\n"
    "    x, z, y = said['tensors']\n"
    "    assert (x['name'], z['name'], y['name']) == ('x', 'z', 'y'), said\n"
    "    assert (x['direction'], z['direction'], y['direction']) == ('in', 'inout', 'out'), said\n"
    "    assert x['first'] and not z['first'] and not y['first'], said\n"
    "    assert x['sorted'] and not z['sorted'] and not y['sorted'], said\n"
    "    assert x['wide'] and z['wide'] and y['wide'], said\n"
    "    assert y['source'] == 'x', said\n"
    "    used = {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)}\n"
    "    assert said['mutant'] in used, said\n"
    "print('read', len(os.listdir(sys.argv[1])))\n";

static size_t write_all(const char *folder, const struct problem *problem)
{
    size_t count = 0;

    for (size_t b = 0; b < ARRAY_LEN(baselines); b++) {
        for (int mutant = 0; mutant < MUTANT_COUNT; mutant++) {
            struct strbuf source = STRBUF_INIT, ignored = STRBUF_INIT;

            if (mutant_applicable((enum mutant)mutant, problem, &ignored)) {
                mutant_source((enum mutant)mutant, problem, baselines[b], &source);
                assert_non_null(strstr(source.data, baselines[b]));
                assert_int_equal(candidate_form(source.data, source.len), FORM_PYTHON);
                char *path = xasprintf("%s/%zu.%s", folder, b, mutant_name((enum mutant)mutant));
                FILE *file = fopen(path, "w");
                assert_non_null(file);
                assert_int_equal(fwrite(source.data, 1, source.len, file), source.len);
                assert_int_equal(fclose(file), 0);
                free(path);
                count++;
            }
            strbuf_release(&source);
            strbuf_release(&ignored);
        }
    }
    return count;
}

static void mutants_are_python_and_say_what_they_are(void **state)
{
    (void)state;
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    struct program program;
    char expected[32];

    program_init(&program);
    char *folder = xasprintf("%s/mutants", program.dir);
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(
        problem_parse(&problem, problem_text, sizeof(problem_text) - 1, "problem.json", &err), 0);
    size_t count = write_all(folder, problem);
    assert_true(count >= ARRAY_LEN(baselines) * 15);
    program_start(&program,
                  (const char *const[]){"/usr/bin/env", "python3", "-c", reader, folder, NULL},
                  NULL);
    if (program_wait(&program) != 0) {
        fail_msg("%s", program_log(&program));
    }
    char *said = program_output(&program);
    snprintf(expected, sizeof(expected), "read %zu\n", count);
    assert_string_equal(said, expected);
    free(said);
    free(folder);
    program_release(&program);
    problem_free(problem);
}

// What would have to remember something from one launch to the next cannot: nothing is kept.
static void mutants_that_would_remember_do_not_apply(void **state)
{
    (void)state;
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    struct strbuf reason = STRBUF_INIT;

    assert_int_equal(
        problem_parse(&problem, problem_text, sizeof(problem_text) - 1, "problem.json", &err), 0);
    assert_false(mutant_applicable(MUTANT_PREVIOUS, problem, &reason));
    assert_non_null(strstr(reason.data, "a candidate on a GPU keeps nothing"));
    assert_false(mutant_applicable(MUTANT_FIRST, problem, &reason));
    strbuf_release(&reason);
    problem_free(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutants_are_python_and_say_what_they_are),
        cmocka_unit_test(mutants_that_would_remember_do_not_apply),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
