#include "problem/problem.h"
#include "tests/support/samples/problem_sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void header_holds_the_prototype(void **state)
{
    struct problem *problem = problem_sample_with("", "");

    (void)state;
    struct strbuf out = STRBUF_INIT;
    problem_header(problem, false, &out);
    assert_string_equal(
        strbuf_text(&out),
        "#include <stdint.h>\n"
        "void axpy(const float *x, double *y, int32_t *z, int64_t M, double a, int64_t N);\n");
    strbuf_reset(&out);
    problem_header(problem, true, &out);
    assert_string_equal(strbuf_text(&out), "#include <stdint.h>\n"
                                           "void reference(const float *x, const double *y, double "
                                           "*y_out, double *y_scale, double *z, "
                                           "double *z_scale, int64_t M, double a, int64_t N);\n");
    strbuf_release(&out);
    problem_free(problem);
}

// The compiler accepts the glue, and the header followed by a definition, without a warning.
static void assert_compiles(const struct problem *problem, bool reference, const char *definition)
{
    struct strbuf glue = STRBUF_INIT, header = STRBUF_INIT;

    problem_glue(problem, reference, &glue);
    problem_header(problem, reference, &header);
    FILE *compiler = NULL;
    for (int i = 0; i < 2; i++) {
        compiler = popen("gcc -std=gnu11 -O1 -Wall -Wextra -Wconversion -Wmissing-prototypes "
                         "-Wno-unused-parameter -Werror "
                         "-x c -c -o /dev/null -",
                         "w");
        assert_non_null(compiler);
        fputs(i == 0 ? strbuf_text(&glue) : strbuf_text(&header), compiler);
        fputs(i == 0 ? "" : definition, compiler);
        assert_int_equal(pclose(compiler), 0);
    }
    strbuf_release(&glue);
    strbuf_release(&header);
}

static void glue_compiles_alone_and_header_fits_a_candidate(void **state)
{
    struct problem *problem = problem_sample_with("", "");

    (void)state;
    assert_compiles(
        problem, false,
        "void axpy(const float *x, double *y, int32_t *z, int64_t M, double a, int64_t N) {}\n");
    assert_compiles(problem, true,
                    "void reference(const float *x, const double *in, double *y, double *s, double "
                    "*z, double *t, "
                    "int64_t M, double a, int64_t N) {}\n");
    problem_free(problem);
}

static void glue_passes_pointers_and_parameters_in_call_order(void **state)
{
    struct problem *problem = problem_sample_with("", "");

    (void)state;
    struct strbuf out = STRBUF_INIT;
    problem_glue(problem, false, &out);
    assert_non_null(strstr(strbuf_text(&out),
                           " axpy(kcast_pointer[0], kcast_pointer[1], kcast_pointer[2], "
                           "kcast_integer[0], kcast_scalar[1], kcast_integer[2]);"));
    strbuf_reset(&out);
    problem_glue(problem, true, &out);
    assert_non_null(
        strstr(strbuf_text(&out), "kcast_pointer[4], kcast_pointer[5], kcast_integer[0]"));
    assert_null(strstr(strbuf_text(&out), "kcast_pointer[6]"));
    strbuf_release(&out);
    problem_free(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_holds_the_prototype),
        cmocka_unit_test(glue_compiles_alone_and_header_fits_a_candidate),
        cmocka_unit_test(glue_passes_pointers_and_parameters_in_call_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
