// The worked files that language models are shown: the manifest is one, NVRTC takes the CUDA file
// for shapes with and without a tensor map, and the C file computes what it says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char row_sum_text[] =
    "{\"name\": \"row_sum\", \"title\": \"y = a sums\", \"license\": \"MIT\", \"language\": "
    "\"cuda\", \"params\": [{\"name\": \"rows\", \"type\": \"int\"}, {\"name\": \"cols\", "
    "\"type\": "
    "\"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\": "
    "[\"rows\", \"cols\"], \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"rows\"],"
    "\"tolerance\": 16}], \"cases\": {\"check\": [{\"rows\": 3, \"cols\": 17, \"a\": 2}],"
    "\"bench\": [{\"params\": {\"rows\": 64, \"cols\": 1000, \"a\": 2}, \"weight\": 1}]},"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"rows*cols\", \"bytes\": \"4*rows*cols\"}}";
#define COMPILE_PROBLEM_TEXT row_sum_text

#include "problem/manifest.h"
#include "tests/executor/gpu/compile/compile_fixture.h"
// The texts are data without a header of the executor's; its rooms do not know the worker's.
#include "worker/prompt/prompt_form.c"

static void the_sealed_file_has_every_line_and_compiles(void **state)
{
    struct compile_outcome outcome;
    struct err err = ERR_INIT;
    struct problem *problem = NULL;
    struct manifest *manifest = NULL;

    assert_int_equal(problem_parse(&problem, row_sum_text, strlen(row_sum_text), "p", &err), 0);
    if (manifest_parse(&manifest, prompt_example_cuda, strlen(prompt_example_cuda), "example",
                       problem, MANIFEST_CANDIDATE, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(manifest->launch_count, 3);
    assert_int_equal(manifest->scratch_count, 1);
    assert_int_equal(manifest->tensormap_count, 1);
    assert_true(manifest->specializes && manifest->launch[2].pdl);
    // Of the check case and the benchmark case each, the right launches are left out.
    for (size_t i = 0; i < 2; i++) {
        const struct shape_case *shape = i == 0 ? &problem->check[0] : &problem->bench[0];
        struct manifest_shape with_map, plain;

        assert_int_equal(manifest_launch_shape(manifest, 0, shape, problem, &with_map, &err), 0);
        assert_int_equal(manifest_launch_shape(manifest, 1, shape, problem, &plain, &err), 0);
        assert_int_equal(with_map.skipped, i == 0);
        assert_int_equal(plain.skipped, i == 1);
    }
    manifest_free(manifest);
    problem_free(problem);
    if (try_compile(state, prompt_example_cuda, 120, 600, 4096, NULL, &outcome, &err) != 0) {
        fail_msg("%s", err.text);
    }
    if (outcome.compiled->verdict != VERDICT_NONE) {
        fail_msg("%s\n%s", outcome.compiled->reason,
                 outcome.compiled->log ? outcome.compiled->log : "");
    }
    message_clear(&compile_outcome_message, &outcome);
}

static void the_c_file_computes_what_it_says(void **state)
{
    static const char test[] =
        "#include <stdint.h>\n"
        "int main(void) { float x[3 * 13], y[3]; for (int i = 0; i < 39; i++) x[i] = i;"
        " row_sum(x, y, 3, 13, 0.5);"
        " return y[0] == 39 && y[1] == 123.5f && y[2] == 208 ? 0 : 1; }\n";
    char folder[] = "/tmp/kcast-form-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(folder));
    char *command =
        xasprintf("gcc -std=gnu11 -O3 -Wall -Werror -x c -o %s/a - && %s/a", folder, folder);
    FILE *compiler = popen(command, "w");
    assert_non_null(compiler);
    fprintf(compiler, "#include <stdint.h>\n%s%s", prompt_example_c, test);
    assert_int_equal(pclose(compiler), 0);
    free(command);
    command = xasprintf("%s/a", folder);
    assert_int_equal(unlink(command), 0);
    assert_int_equal(rmdir(folder), 0);
    free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_sealed_file_has_every_line_and_compiles, set_up,
                                        tear_down),
        cmocka_unit_test(the_c_file_computes_what_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
