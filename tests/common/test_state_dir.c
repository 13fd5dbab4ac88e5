#include "common/state_dir.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

// Sets or, with NULL, unsets the three variables, and checks what follows from them.
static void check(const char *given, const char *xdg, const char *home, const char *expected)
{
    const char *const variable[] = {"STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"};
    const char *const value[] = {given, xdg, home};
    struct err err = ERR_INIT;
    char *dir = NULL;

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(value[i] ? setenv(variable[i], value[i], 1) : unsetenv(variable[i]), 0);
    }
    int rc = state_dir_default(&dir, "kcastd", "/var/lib/x", &err);
    if (expected) {
        assert_int_equal(rc, 0);
        assert_string_equal(dir, expected);
    } else {
        assert_int_equal(rc, ERR_USAGE);
        assert_null(dir);
    }
    free(dir);
}

static void service_manager_comes_first(void **state)
{
    (void)state;
    check("/run/a:/run/b", "/xdg", "/home/x", "/run/a");
    check("relative", "/xdg", "/home/x", "/xdg/kernelcast/kcastd");
}

static void a_folder_of_ones_own_choice_comes_next(void **state)
{
    (void)state;
    check(NULL, "/xdg", "/home/x", "/xdg/kernelcast/kcastd"); // for root, too
}

static void root_has_its_own_folder(void **state)
{
    bool root = geteuid() == 0;

    (void)state;
    check(NULL, NULL, "/home/x", root ? "/var/lib/x" : "/home/x/.local/state/kernelcast/kcastd");
    check(NULL, "", "/home/x", root ? "/var/lib/x" : "/home/x/.local/state/kernelcast/kcastd");
    check(NULL, NULL, NULL, root ? "/var/lib/x" : NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(service_manager_comes_first),
        cmocka_unit_test(a_folder_of_ones_own_choice_comes_next),
        cmocka_unit_test(root_has_its_own_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
