// What of the daemon's environment kcast-exec gets to see.
#include "common/mem.h"
#include "daemon/run/environment.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int set_up(void **state)
{
    *state = environ; // cmocka itself reads variables
    assert_int_equal(clearenv(), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)clearenv();
    environ = *state;
    return 0;
}

static const char *find(char *const *environment, const char *name)
{
    size_t len = strlen(name);

    for (; *environment; environment++) {
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=') {
            return *environment + len + 1;
        }
    }
    return NULL;
}

static size_t count(char *const *environment)
{
    size_t n = 0;

    while (environment[n]) {
        n++;
    }
    return n;
}

static void secrets_and_preloads_stay_with_the_daemon(void **state)
{
    static const char *const kept[] = {"LD_PRELOAD", "LD_AUDIT",    "HOME",         "LANG",
                                       "PATHS",      "API_TOKEN",   "CUDA",         "KCAST",
                                       "XKCAST_A",   "LC_ALL_MORE", "NOTIFY_SOCKET"};
    static const char *const passed[] = {"PATH",          "TMPDIR",
                                         "KCAST_FAKE_X",  "LD_LIBRARY_PATH",
                                         "CUDA_HOME",     "CUDA_VISIBLE_DEVICES",
                                         "ASAN_OPTIONS",  "LSAN_OPTIONS",
                                         "UBSAN_OPTIONS", "TSAN_OPTIONS"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        assert_int_equal(setenv(kept[i], "secret", 1), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
        assert_int_equal(setenv(passed[i], passed[i], 1), 0);
    }
    char **environment = environment_create(NULL);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        assert_null(find(environment, kept[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
        assert_string_equal(find(environment, passed[i]), passed[i]);
    }
    assert_int_equal(count(environment), ARRAY_LEN(passed) + 1);
    environment_free(environment);
}

static void the_locale_is_c_whatever_the_daemons_is(void **state)
{
    (void)state;
    assert_int_equal(setenv("LC_ALL", "de_DE.UTF-8", 1), 0);
    char **environment = environment_create(NULL);
    assert_string_equal(find(environment, "LC_ALL"), "C");
    assert_int_equal(count(environment), 1);
    environment_free(environment);
    environment_free(NULL);
}

static void temporary_files_go_where_the_daemon_wants_them(void **state)
{
    (void)state;
    for (int theirs = 0; theirs < 2; theirs++) {
        char **environment = environment_create("/of/the/daemon");

        assert_string_equal(find(environment, "TMPDIR"), "/of/the/daemon");
        assert_int_equal(count(environment), 2);
        environment_free(environment);
        assert_int_equal(setenv("TMPDIR", "/of/the/user", 1), 0);
    }
}

static void it_is_a_copy_that_later_changes_do_not_reach(void **state)
{
    (void)state;
    assert_int_equal(setenv("PATH", "/before", 1), 0);
    char **environment = environment_create(NULL);
    assert_int_equal(setenv("PATH", "/afterwards", 1), 0);
    assert_string_equal(find(environment, "PATH"), "/before");
    assert_int_equal(unsetenv("PATH"), 0);
    assert_string_equal(find(environment, "PATH"), "/before");
    environment_free(environment);
}

static void more_variables_than_there_is_room_for_still_leave_a_locale(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "KCAST_%d", i);
        assert_int_equal(setenv(name, "", 1), 0);
    }
    char **environment = environment_create(NULL);
    assert_in_range(count(environment), 32, 64);
    assert_string_equal(find(environment, "LC_ALL"), "C");
    environment_free(environment);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(secrets_and_preloads_stay_with_the_daemon),
        TEST(the_locale_is_c_whatever_the_daemons_is),
        TEST(temporary_files_go_where_the_daemon_wants_them),
        TEST(it_is_a_copy_that_later_changes_do_not_reach),
        TEST(more_variables_than_there_is_room_for_still_leave_a_locale),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
