#include "common/options.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include "common/file.h"
#include "common/mem.h"
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct target {
    bool quiet;
    bool verbose;
    char *pool;
    char *mode;
    uint64_t jobs;
    uint64_t timeout_ns;
    uint64_t cache_bytes;
    double share;
    double any;
};

#define FIELD(f) .offset = offsetof(struct target, f)

static const struct option_row table[] = {
    {.name = "quiet", .letter = 'q', .type = OPTION_FLAG, FIELD(quiet), .help = "Say less"},
    {.name = "verbose", .letter = 'v', .type = OPTION_FLAG, FIELD(verbose), .help = "Say more"},
    {.name = "pool",
     .letter = 'p',
     .type = OPTION_TEXT,
     FIELD(pool),
     .argument = "URL",
     .default_text = "tcp://localhost",
     .help = "Where the daemon listens"},
    {.name = "mode",
     .type = OPTION_CHOICE,
     FIELD(mode),
     .argument = "MODE",
     .default_text = "auto",
     .choices = "auto|measure|forecast",
     .help = "How to judge"},
    {.name = "jobs",
     .letter = 'j',
     .type = OPTION_U64,
     FIELD(jobs),
     .argument = "N",
     .default_text = "2",
     .min = 1,
     .max = 64,
     .help = "How many at once"},
    {.name = "timeout",
     .type = OPTION_DURATION,
     FIELD(timeout_ns),
     .argument = "TIME",
     .default_text = "30s",
     .max = 3600e9,
     .help = "Longest wait"},
    {.name = "cache",
     .type = OPTION_SIZE,
     FIELD(cache_bytes),
     .argument = "SIZE",
     .default_text = "64M",
     .help = "Size of the cache"},
    {.name = "share",
     .type = OPTION_F64,
     FIELD(share),
     .argument = "X",
     .default_text = "0.5",
     .min = -1,
     .max = 1,
     .help = "Share of something"},
    {.name = "any", .type = OPTION_F64, FIELD(any), .argument = "X", .help = "Without a limit"},
    {0},
};

// Parses a command line given as a NULL-terminated list, on top of the defaults.
static int parse(struct target *target, char **args, char ***ret_args, size_t *ret_count,
                 struct err *err)
{
    char *argv[16] = {(char *)"program"};
    int argc = 1;

    for (; args[argc - 1]; argc++) {
        argv[argc] = args[argc - 1];
    }
    assert_int_equal(options_defaults(table, target, NULL), 0);
    return options_parse(table, target, argc, argv, ret_args, ret_count, err);
}

#define ARGS(...) ((char *[]){__VA_ARGS__, NULL})

static void defaults_fill_every_field(void **state)
{
    (void)state;
    struct target target = {.any = 7, .quiet = true};
    target.pool = xstrdup("old");
    assert_int_equal(options_defaults(table, &target, NULL), 0);
    assert_false(target.quiet);
    assert_string_equal(target.pool, "tcp://localhost");
    assert_string_equal(target.mode, "auto");
    assert_int_equal(target.jobs, 2);
    assert_true(target.timeout_ns == 30000000000);
    assert_true(target.cache_bytes == 64 << 20);
    assert_true(target.share == 0.5);
    assert_true(target.any == 0);
    options_release(table, &target);
    assert_null(target.pool);
    assert_null(target.mode);
    options_release(table, &target);
}

static void bad_default_is_a_defect(void **state)
{
    static const struct option_row bad[] = {
        {.name = "jobs", .type = OPTION_U64, FIELD(jobs), .default_text = "x", .help = ""}, {0}};

    (void)state;
    struct target target = {0};
    struct err err = ERR_INIT;
    assert_int_equal(options_defaults(bad, &target, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.text, "jobs"));
}

static void all_spellings_are_understood(void **state)
{
    (void)state;
    struct target target = {0};
    char **args = NULL;
    size_t count = 9;
    assert_int_equal(parse(&target,
                           ARGS("--pool=a=b", "--jobs", "3", "-q", "--timeout=250ms", "--cache",
                                "1K", "--share=-0.25", "--any", "-1e3", "--mode", "forecast"),
                           &args, &count, NULL),
                     0);
    assert_int_equal(count, 0);
    assert_string_equal(target.pool, "a=b");
    assert_int_equal(target.jobs, 3);
    assert_true(target.quiet);
    assert_false(target.verbose);
    assert_true(target.timeout_ns == 250000000);
    assert_int_equal(target.cache_bytes, 1024);
    assert_true(target.share == -0.25);
    assert_true(target.any == -1000);
    assert_string_equal(target.mode, "forecast");
    free(args);
    options_release(table, &target);
}

static void letters_join_and_take_values(void **state)
{
    (void)state;
    struct target target = {0};
    char **args = NULL;
    size_t count = 0;
    assert_int_equal(parse(&target, ARGS("-vqj7", "-p", "x"), &args, &count, NULL), 0);
    free(args);
    assert_true(target.verbose);
    assert_true(target.quiet);
    assert_int_equal(target.jobs, 7);
    assert_string_equal(target.pool, "x");
    assert_int_equal(parse(&target, ARGS("-vj", "8"), &args, &count, NULL), 0);
    free(args);
    assert_int_equal(target.jobs, 8);
    options_release(table, &target);
}

static void other_arguments_may_stand_anywhere(void **state)
{
    (void)state;
    struct target target = {0};
    char **args = NULL;
    size_t count = 0;
    assert_int_equal(parse(&target,
                           ARGS("one", "-q", "-", "--jobs", "5", "two", "--", "--jobs", "-v"),
                           &args, &count, NULL),
                     0);
    assert_int_equal(count, 5);
    assert_string_equal(args[0], "one");
    assert_string_equal(args[1], "-");
    assert_string_equal(args[2], "two");
    assert_string_equal(args[3], "--jobs");
    assert_string_equal(args[4], "-v");
    assert_null(args[5]);
    assert_true(target.quiet);
    assert_false(target.verbose);
    assert_int_equal(target.jobs, 5);
    free(args);
    options_release(table, &target);
}

static void last_of_several_wins_and_flags_can_be_taken_back(void **state)
{
    (void)state;
    struct target target = {0};
    char **args = NULL;
    size_t count = 0;
    assert_int_equal(parse(&target,
                           ARGS("--pool=a", "--pool=", "-q", "--quiet=no", "--verbose=yes"), &args,
                           &count, NULL),
                     0);
    assert_string_equal(target.pool, "");
    assert_false(target.quiet);
    assert_true(target.verbose);
    free(args);
    options_release(table, &target);
}

static void empty_command_line_is_fine(void **state)
{
    (void)state;
    struct target target = {0};
    char *argv[] = {(char *)"program", NULL};
    char **args = NULL;
    size_t count = 9;
    assert_int_equal(options_parse(table, &target, 1, argv, &args, &count, NULL), 0);
    assert_int_equal(count, 0);
    free(args);
    assert_int_equal(options_parse(table, &target, 0, argv, &args, &count, NULL), 0);
    assert_int_equal(count, 0);
    free(args);
}

static void usage_errors_name_option_and_reason(void **state)
{
    static const struct {
        const char *argument[2];
        const char *name;
        const char *reason;
    } bad[] = {
        {{"--nope=1"}, "--nope", "unknown"},
        {{"--job=1"}, "--job", "unknown"}, // no abbreviations
        {{"--job=1"}, "--job", "did you mean --jobs?"},
        {{"--tiemout", "1s"}, "--tiemout", "did you mean --timeout?"},
        {{"--frobnicate"}, "--frobnicate", "--help lists all"},
        {{"-x"}, "-x", "unknown"},
        {{"-qx"}, "-x", "unknown"},
        {{"--"
          "=x"},
         "--",
         "unknown"},
        {{"--jobs"}, "--jobs", "needs a value: N"},
        {{"-j"}, "-j", "needs a value"},
        {{"--jobs=0"}, "--jobs", "outside 1 to 64"},
        {{"--jobs", "65"}, "--jobs", "outside 1 to 64"},
        {{"-jx"}, "-j", "not a whole number"},
        {{"--timeout=2h"}, "--timeout", "outside the allowed range, 0 to 1h"},
        {{"--timeout=soon"}, "--timeout", "duration"},
        {{"--cache", "1X"}, "--cache", "size"},
        {{"--share=1.5"}, "--share", "outside -1 to 1"},
        {{"--any=nan"}, "--any", "not a number"},
        {{"--mode=aut"}, "--mode", "auto|measure|forecast"},
        {{"--mode="}, "--mode", "none of"},
        {{"--mode=auto|measure"}, "--mode", "none of"},
        {{"--quiet=maybe"}, "--quiet", "neither true nor false"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct target target = {0};
        struct err err = ERR_INIT;
        char *list[] = {(char *)bad[i].argument[0], (char *)bad[i].argument[1], NULL};
        char **args = NULL;
        size_t count = 99;

        assert_int_equal(parse(&target, list, &args, &count, &err), ERR_USAGE);
        assert_int_equal(err.code, ERR_USAGE);
        if (!strstr(err.text, bad[i].name) || !strstr(err.text, bad[i].reason)) {
            fail_msg("'%s' lacks '%s' or '%s'", err.text, bad[i].name, bad[i].reason);
        }
        assert_null(args);
        assert_int_equal(count, 99);
        assert_int_equal(target.jobs, 2); // a refused value changes nothing
        assert_string_equal(target.mode, "auto");
        options_release(table, &target);
    }
}

// Reads an INI text from a temporary file.
static int read_ini(struct target *target, const char *text, size_t len, struct err *err)
{
    char *dir = NULL;

    assert_int_equal(file_make_temp_dir(&dir, "kcast-test-options", NULL), 0);
    char *path = xasprintf("%s/k.ini", dir);
    assert_int_equal(file_replace(path, text, len, false, NULL), 0);
    assert_int_equal(options_defaults(table, target, NULL), 0);
    int rc = options_read_ini(table, target, path, "kcastd", err);
    assert_int_equal(file_remove_tree(dir, NULL), 0);
    free(path);
    free(dir);
    return rc;
}

static void ini_sets_fields_by_option_name(void **state)
{
    static const char text[] = "# comment\n"
                               "; comment\n"
                               "\n"
                               "[kcastd]\r\n"
                               "pool = tcp://0.0.0.0:7410 ; inline comment\n"
                               "  jobs=9\r\n"
                               "quiet = yes\n"
                               "share: -1\n"
                               "cache = 2G"; // without a newline at the end
    struct target target = {0};

    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(read_ini(&target, text, sizeof(text) - 1, &err), 0);
    assert_string_equal(err.text, "");
    assert_string_equal(target.pool, "tcp://0.0.0.0:7410");
    assert_int_equal(target.jobs, 9);
    assert_true(target.quiet);
    assert_true(target.share == -1);
    assert_true(target.cache_bytes == 2147483648U);
    assert_string_equal(target.mode, "auto");
    options_release(table, &target);
}

static void empty_ini_changes_nothing(void **state)
{
    (void)state;
    struct target target = {0};
    assert_int_equal(read_ini(&target, "", 0, NULL), 0);
    assert_int_equal(target.jobs, 2);
    options_release(table, &target);
}

static void ini_errors_name_file_and_line(void **state)
{
    static const struct {
        const char *text;
        const char *place;
        const char *reason;
    } bad[] = {
        {"[kcastd]\njobs = 3\nnope = 1\n", "k.ini:3:", "nope"},
        {"[kcastd]\njobs = 300\n", "k.ini:2:", "jobs"},
        {"[kcastd]\nquiet\n", "k.ini:2:", "key = value"},
        {"[kcastd\njobs = 3\n", "k.ini:1:", "key = value"},
        {"\n\n[worker]\njobs = 3\n", "k.ini:4:", "[worker]"},
        {"jobs = 3\n", "k.ini:1:", "outside"},
        {"[kcastd]\nrubbish\njobs = 300\n", "k.ini:2:", "key = value"},
        {"[kcastd]\njobs = 300\nrubbish\n", "k.ini:2:", "jobs"},
        {"[kcastd]\npool = a\n  b\n", "k.ini:3:", "key = value"}, // no continuation lines
        {"[kcastd]\nquiet =\n", "k.ini:2:", "quiet"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct target target = {0};
        struct err err = ERR_INIT;

        assert_int_equal(read_ini(&target, bad[i].text, strlen(bad[i].text), &err), ERR_INVALID);
        if (!strstr(err.text, bad[i].place) || !strstr(err.text, bad[i].reason)) {
            fail_msg("'%s' lacks '%s' or '%s'", err.text, bad[i].place, bad[i].reason);
        }
        options_release(table, &target);
    }
}

static void ini_line_that_is_too_long_is_refused_and_not_cut(void **state)
{
    char *text = xasprintf("[kcastd]\n# %1000s\npool = %1000s\njobs = 4\n", "x", "x");

    (void)state;
    struct target target = {0};
    struct err err = ERR_INIT;
    assert_int_equal(read_ini(&target, text, strlen(text), &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "k.ini:3: longer than"));
    options_release(table, &target);
    free(text);
}

static void ini_that_is_missing_or_binary_is_refused(void **state)
{
    (void)state;
    struct target target = {0};
    struct err err = ERR_INIT;
    assert_int_equal(options_read_ini(table, &target, "/nonexistent/k.ini", "kcastd", &err),
                     ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nonexistent/k.ini"));
    assert_int_equal(read_ini(&target, "[kcastd]\n\0", 10, NULL), ERR_INVALID);
    options_release(table, &target);
}

static void values_of_a_list_are_kept_in_order(void **state)
{
    struct option_row rows[] = {
        {.name = "define",
         .letter = 'D',
         .type = OPTION_TEXTS,
         .argument = "NAME=VALUE",
         .help = "x"},
        {0},
    };
    char *argv[] = {(char *)"program", (char *)"--define", (char *)"A=1", (char *)"-DB=2", NULL};
    char *broken[] = {(char *)"program", (char *)"--define=A\nB", NULL};
    char *field = NULL, **args;
    size_t count;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(options_parse(rows, &field, 4, argv, &args, &count, &err), 0);
    free(args);
    assert_string_equal(field, "A=1\nB=2");
    assert_int_equal(options_parse(rows, &field, 2, broken, &args, &count, &err), ERR_USAGE);
    assert_string_equal(field, "A=1\nB=2");
    options_release(rows, &field);
    assert_null(field);
}

static void lines_of_help_end_between_words_at_the_width(void **state)
{
    static const char words[] = "words that go on and on and on until they do not";
    struct option_row rows[] = {
        {.name = "many", .type = OPTION_U64, .argument = "N", .default_text = "3", .help = words},
        {.name = "a-name-that-leaves-no-room",
         .type = OPTION_TEXT,
         .argument = "LONG",
         .help = "x"},
        {0},
    };
    char text[4096] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");

    (void)state;
    assert_non_null(file);
    assert_int_equal(setenv("COLUMNS", "60", 1), 0);
    options_print(rows, file);
    assert_int_equal(unsetenv("COLUMNS"), 0);
    fclose(file);
    assert_string_equal(text, "      --many=N                  words that go on and on and\n"
                              "                                on until they do not\n"
                              "                                (default: 3)\n"
                              "      --a-name-that-leaves-no-room=LONG\n"
                              "                                x\n");
}

static void help_shows_every_row_aligned_with_default(void **state)
{
    char text[4096] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    const char *line = text;

    (void)state;
    assert_non_null(file);
    options_print(table, file);
    fclose(file);
    size_t column = (size_t)(strstr(text, "Say less") - text);
    for (const struct option_row *row = table; row->name; row++) {
        const char *help = strstr(line, row->help);

        assert_non_null(help);
        assert_int_equal((size_t)(help - line), column);
        line = strchr(line, '\n') + 1;
    }
    assert_string_equal(line, "");
    assert_non_null(strstr(text, "  -p, --pool=URL"));
    assert_non_null(strstr(text, "      --timeout=TIME"));
    assert_non_null(strstr(text, "(default: 30s)\n"));
    assert_non_null(strstr(text, "one of auto|measure|forecast (default: auto)\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_fill_every_field),
        cmocka_unit_test(bad_default_is_a_defect),
        cmocka_unit_test(all_spellings_are_understood),
        cmocka_unit_test(letters_join_and_take_values),
        cmocka_unit_test(other_arguments_may_stand_anywhere),
        cmocka_unit_test(last_of_several_wins_and_flags_can_be_taken_back),
        cmocka_unit_test(empty_command_line_is_fine),
        cmocka_unit_test(usage_errors_name_option_and_reason),
        cmocka_unit_test(ini_sets_fields_by_option_name),
        cmocka_unit_test(values_of_a_list_are_kept_in_order),
        cmocka_unit_test(lines_of_help_end_between_words_at_the_width),
        cmocka_unit_test(empty_ini_changes_nothing),
        cmocka_unit_test(ini_errors_name_file_and_line),
        cmocka_unit_test(ini_line_that_is_too_long_is_refused_and_not_cut),
        cmocka_unit_test(ini_that_is_missing_or_binary_is_refused),
        cmocka_unit_test(help_shows_every_row_aligned_with_default),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
