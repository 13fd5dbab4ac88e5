// What every compiler reports in the same way: the first reason counts, and text is safe to print.
#include "executor/compile_result.h"

#include "common/mem.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_first_reason_counts(void **state)
{
    struct compile_plan plan;
    struct compiled compiled;

    (void)state;
    message_init(&compile_plan_message, &plan);
    message_init(&compiled_message, &compiled);
    plan.max_seconds = 2.5;
    plan.max_output = (uint64_t)32 << 20;
    compile_result_refuse(&compiled, VERDICT_REJECTED, xstrdup("it opens a file"));
    compile_result_refuse(&compiled, VERDICT_COMPILE_ERROR, xstrdup("it is empty"));
    compile_result_refuse_slow(&compiled, &plan);
    compile_result_refuse_large(&compiled, plan.max_output);
    assert_int_equal(compiled.verdict, VERDICT_REJECTED);
    assert_string_equal(compiled.reason, "it opens a file");
    message_clear(&compiled_message, &compiled);
}

static void limits_are_named_in_the_sentence(void **state)
{
    static const struct {
        double seconds;
        uint64_t output;
        const char *slow, *large;
    } row[] = {
        {2.5, (uint64_t)32 << 20,
         "compiling it takes longer than the 2.5 seconds of processor time allowed",
         "its object is larger than the 32 MiB allowed"},
        {60, (uint64_t)1 << 40,
         "compiling it takes longer than the 60 seconds of processor time allowed",
         "its object is larger than the 1048576 MiB allowed"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        for (int large = 0; large < 2; large++) {
            struct compile_plan plan;
            struct compiled compiled;

            message_init(&compile_plan_message, &plan);
            message_init(&compiled_message, &compiled);
            plan.max_seconds = row[i].seconds;
            plan.max_output = row[i].output;
            if (large) {
                compile_result_refuse_large(&compiled, plan.max_output);
            } else {
                compile_result_refuse_slow(&compiled, &plan);
            }
            assert_int_equal(compiled.verdict, VERDICT_COMPILE_ERROR);
            assert_string_equal(compiled.reason, large ? row[i].large : row[i].slow);
            message_clear(&compiled_message, &compiled);
        }
    }
}

static void a_host_that_stands_still_is_named(void **state)
{
    struct compile_plan plan;
    struct err err = ERR_INIT;

    (void)state;
    message_init(&compile_plan_message, &plan);
    plan.max_seconds = 60;
    plan.wall_seconds = 600;
    assert_int_equal(compile_result_stalled(&plan, 1.5, &err), ERR_TIMED_OUT);
    assert_non_null(strstr(err.text, "not ended after 600 seconds"));
    assert_non_null(strstr(err.text, "only 1.5 seconds of processor time: this host"));
}

// Whatever a compiler says or does not say, a refusal has a reason.
static void no_refusal_is_without_a_reason(void **state)
{
    static const char *const blank[] = {NULL, "", " ", "\n", " \t\n "};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(blank); i++) {
        struct compiled compiled;

        message_init(&compiled_message, &compiled);
        compile_result_refuse(&compiled, VERDICT_COMPILE_ERROR,
                              blank[i] ? xstrdup(blank[i]) : NULL);
        assert_int_equal(compiled.verdict, VERDICT_COMPILE_ERROR);
        assert_non_null(strstr(compiled.reason, "gives no reason"));
        message_clear(&compiled_message, &compiled);
    }
}

static void the_end_of_a_compiler_is_told(void **state)
{
    static const struct {
        int status;
        const char *words;
    } row[] = {{SIGSEGV, "was ended by SIGSEGV"},        {SIGKILL, "was ended by SIGKILL"},
               {SIGABRT | 0x80, "was ended by SIGABRT"}, {60, "was ended by signal 60"},
               {4 << 8, "ended with exit status 4"},     {-1, "ended with wait status 0xffffffff"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char *end = compile_result_end(row[i].status);

        assert_non_null(strstr(end, row[i].words));
        free(end);
    }
}

static void only_valid_text_is_left(void **state)
{
    static const struct {
        const char *bytes, *text; // of the same length
        size_t len;
    } row[] = {
        {"", "", 0},
        {"plain\n\ttext", "plain\n\ttext", 11},
        {"a\0b", "a?b", 3},
        {"\r\x1b[31m\x7f", "??[31m?", 7}, // a terminal obeys these
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9},
        {"\xc2\xa0\xdf\xbf", "\xc2\xa0\xdf\xbf", 4},                 // first and last of two bytes
        {"\xc2\x80\xc2\x9b", "????", 4},                             // control characters
        {"\xe2\x80\xae\xe2\x81\xa9", "??????", 6},                   // change the direction
        {"\xe0\xa0\x80\xef\xbf\xbf", "\xe0\xa0\x80\xef\xbf\xbf", 6}, // of three
        {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8}, // of four
        {"\xc0\xaf\xc1\xbf", "????", 4},                                             // overlong
        {"\xe0\x9f\xbf\xf0\x8f\xbf\xbf", "???????", 7},
        {"\xed\x9f\xbf\xed\xa0\x80\xed\xbf\xbf\xee\x80\x80", "\xed\x9f\xbf??????\xee\x80\x80", 12},
        {"\xf4\x90\x80\x80\xf5\x80\x80\x80\xff", "?????????", 9}, // beyond U+10FFFF
        {"\x80x\xbfy", "?x?y", 4},                                // nothing to continue
        {"\xc3\xe2\x82xyz", "???xyz", 6},                         // cut off within the text
        {"x\xc3", "x?", 2},                                       // and at its end
        {"x\xe2\x82", "x??", 3},
        {"x\xf0\x9f\x98", "x???", 4},
        {"\xf0\x9f\x98\xc3\xa4", "???\xc3\xa4", 5}, // what follows is read again
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        // Just as much memory as there is text, so that a read behind it shows.
        char *text = xmemdup(row[i].bytes, row[i].len);

        compile_result_clean(text, row[i].len);
        if (memcmp(text, row[i].text, row[i].len) != 0) {
            fail_msg("row %zu: %.*s", i, (int)row[i].len, text);
        }
        // What has been cleaned is clean.
        compile_result_clean(text, row[i].len);
        assert_memory_equal(text, row[i].text, row[i].len);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_reason_counts),
        cmocka_unit_test(limits_are_named_in_the_sentence),
        cmocka_unit_test(a_host_that_stands_still_is_named),
        cmocka_unit_test(no_refusal_is_without_a_reason),
        cmocka_unit_test(the_end_of_a_compiler_is_told),
        cmocka_unit_test(only_valid_text_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
