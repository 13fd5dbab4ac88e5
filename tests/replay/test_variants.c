// The variants that the options of a command line make, and those that the others are compared
// with.
#include "common/file.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "replay/variants.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sequences *sequences_of(const char *text)
{
    char path[] = "/tmp/variants.XXXXXX";
    int fd = mkstemp(path);
    struct sequences *sequences = NULL;

    assert_true(fd >= 0);
    assert_int_equal(file_write_fd(fd, text, strlen(text), path, NULL), 0);
    assert_int_equal(sequences_read(&sequences, path, NULL), 0);
    (void)close(fd);
    (void)unlink(path);
    return sequences;
}

static void every_policy_goes_with_every_strategy_then_methods_then_sequences(void **state)
{
    static const char *const names[] = {"all/best-of-n", "all/greedy", "risk/best-of-n",
                                        "risk/greedy",   "tenth",      "tvm",
                                        "KT/ga",         "random"};
    struct sequences *sequences = sequences_of("KT/ga s 1 2\nrandom s 1 2\nKT/ga s 2 2\n");
    struct variants_wanted wanted = {.policies = "all,risk",
                                     .strategies = "best-of-n,greedy",
                                     .methods = "tenth,tvm",
                                     .sequences = sequences};
    struct variant variant[TASKS_VARIANTS_MAX];
    size_t count = 0;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(variants_make(&wanted, variant, &count, &err), 0);
    assert_int_equal(count, ARRAY_LEN(names));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(variant[i].name, names[i]);
        assert_true(!variant[i].method == (i < 4));
    }
    for (size_t i = 0; i < 4; i++) { // "all" asks for no forecast
        assert_int_equal(variant[i].forecaster,
                         i < 2 ? SIM_FORECASTER_NONE : SIM_FORECASTER_STATIC);
    }
    assert_string_equal(variant[3].policy, "risk");
    assert_string_equal(variant[3].strategy, "greedy");
    assert_ptr_equal(variant[4].method, &method_tenth);
    assert_ptr_equal(variant[5].method, &method_tvm);
    assert_ptr_equal(variant[6].method, &method_sequence);
    assert_string_equal(variant[6].strategy, "");
    sequences_free(sequences);
}

static void each_forecaster_is_a_variant_of_a_policy_that_looks_at_forecasts(void **state)
{
    static const char *const names[] = {"all/greedy", "rank/greedy/perfect", "rank/greedy"};
    struct variants_wanted wanted = {
        .policies = "all,rank", .strategies = "greedy", .forecasters = "perfect,static"};
    struct variant variant[TASKS_VARIANTS_MAX];
    size_t count = 0;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(variants_make(&wanted, variant, &count, &err), 0);
    assert_int_equal(count, ARRAY_LEN(names));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(variant[i].name, names[i]);
    }
    assert_int_equal(variant[0].forecaster, SIM_FORECASTER_NONE);
    assert_int_equal(variant[1].forecaster, SIM_FORECASTER_PERFECT);
    assert_int_equal(variant[2].forecaster, SIM_FORECASTER_STATIC);
}

static void methods_are_found_by_name_but_for_the_one_that_needs_a_file(void **state)
{
    (void)state;
    assert_ptr_equal(search_method_find("tvm"), &method_tvm);
    assert_ptr_equal(search_method_find("tvm-knobs"), &method_tvm_knobs);
    assert_ptr_equal(search_method_find("tenth"), &method_tenth);
    assert_null(search_method_find(method_sequence.name));
    assert_null(search_method_find(""));
    assert_null(search_method_find("tvm-"));
}

static void what_does_not_exist_is_named_with_its_option(void **state)
{
    static const struct {
        struct variants_wanted wanted;
        const char *sentence;
    } bad[] = {
        {{.policies = "all,hope", .strategies = "greedy"}, "--policy: there is no policy \"hope\""},
        {{.policies = "all", .strategies = "greedy,hope"},
         "--strategy: there is no strategy \"hope\""},
        {{.policies = ",", .strategies = "greedy"}, "--policy: there is no policy \"\""},
        {{.policies = "All", .strategies = "greedy"}, "--policy: there is no policy \"All\""},
        {{.policies = "rank", .strategies = "greedy", .forecasters = "static,none"},
         "--forecaster: there is no forecaster \"none\", only static and perfect"},
        {{.policies = "", .strategies = "", .methods = "ordered"},
         "--peers: there is no peer \"ordered\""},
        {{.policies = "all", .strategies = ""},
         "--policy and --strategy, --peers and --orders name no variant"},
        {{.policies = "", .strategies = "greedy", .methods = ""},
         "--policy and --strategy, --peers and --orders name no variant"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct variant variant[TASKS_VARIANTS_MAX];
        size_t count = 0;
        struct err err = ERR_INIT;
        assert_int_equal(variants_make(&bad[i].wanted, variant, &count, &err), ERR_USAGE);
        assert_string_equal(err.text, bad[i].sentence);
    }
}

static void there_are_64_variants_at_most(void **state)
{
    struct strbuf methods = STRBUF_INIT;
    struct variant variant[TASKS_VARIANTS_MAX];
    size_t count = 0;
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < TASKS_VARIANTS_MAX; i++) {
        strbuf_adds(&methods, i > 0 ? ",tvm" : "tvm");
    }
    struct variants_wanted wanted = {.policies = "", .strategies = "greedy"};
    wanted.methods = strbuf_text(&methods);
    assert_int_equal(variants_make(&wanted, variant, &count, &err), 0);
    assert_int_equal(count, TASKS_VARIANTS_MAX);
    wanted.policies = "all";
    assert_int_equal(variants_make(&wanted, variant, &count, &err), ERR_USAGE);
    assert_string_equal(err.text, "more than 64 variants");
    strbuf_release(&methods);
}

static void the_first_variant_is_compared_with_unless_others_are_named(void **state)
{
    static const struct variant variant[] = {{.name = "a/b"}, {.name = "a"}, {.name = "c"}};
    struct against against;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(against_find(&against, NULL, variant, 3, &err), 0);
    assert_true(against.count == 1 && against.variant[0] == 0);
    assert_int_equal(against_find(&against, "", variant, 3, &err), 0);
    assert_true(against.count == 1 && against.variant[0] == 0);
    assert_int_equal(against_find(&against, "c,a", variant, 3, &err), 0);
    assert_true(against.count == 2 && against.variant[0] == 2 && against.variant[1] == 1);
    assert_int_equal(against_find(&against, "a/b,b", variant, 3, &err), ERR_USAGE);
    assert_string_equal(err.text, "--against: there is no variant \"b\"");
    assert_int_equal(against_find(&against, "c", variant, 2, NULL), ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_goes_with_every_strategy_then_methods_then_sequences),
        cmocka_unit_test(each_forecaster_is_a_variant_of_a_policy_that_looks_at_forecasts),
        cmocka_unit_test(methods_are_found_by_name_but_for_the_one_that_needs_a_file),
        cmocka_unit_test(what_does_not_exist_is_named_with_its_option),
        cmocka_unit_test(there_are_64_variants_at_most),
        cmocka_unit_test(the_first_variant_is_compared_with_unless_others_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
