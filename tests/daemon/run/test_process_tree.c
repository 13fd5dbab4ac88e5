// Whose a process is, as /proc says.
#include "daemon/run/process_tree.h"
#include "tests/daemon/run/processes.h"

static void descendants_are_not_foreign(void **state)
{
    pid_t between;
    struct process below = process_start(2, true, "between", &between);

    (void)state;
    assert_true(below.pid != between);
    assert_false(process_tree_is_foreign(getpid(), getpid()));
    assert_false(process_tree_is_foreign(between, getpid()));
    assert_false(process_tree_is_foreign(below.pid, getpid()));
    assert_false(process_tree_is_foreign(below.pid, between));
    assert_false(process_tree_is_foreign(below.pid, below.pid));
    (void)process_end(&below, between);
}

static void siblings_and_ancestors_are_foreign(void **state)
{
    struct process one = process_start(1, true, "one", NULL);
    struct process two = process_start(1, true, "two", NULL);

    (void)state;
    assert_true(process_tree_is_foreign(one.pid, two.pid));
    assert_true(process_tree_is_foreign(two.pid, one.pid));
    assert_true(process_tree_is_foreign(getpid(), one.pid));
    (void)process_end(&one, one.pid);
    assert_true(process_tree_is_foreign(two.pid, one.pid)); // also when nobody has the number
    (void)process_end(&two, two.pid);
}

static void a_process_that_has_ended_is_nobodys(void **state)
{
    struct process one = process_start(1, true, "one", NULL);

    (void)state;
    (void)process_end(&one, one.pid);
    assert_false(process_tree_is_foreign(one.pid, getpid()));
    assert_false(process_tree_is_foreign(0, getpid()));
    assert_false(process_tree_is_foreign(-1, getpid()));
}

// The name is in the line that is parsed, and a program chooses its name itself.
static void a_name_cannot_forge_the_parent(void **state)
{
    static const char *const names[] = {"x) S 1 (",  ") ) )",       "((((",
                                        "a b 1 2 3", ") S 1 1 1 1", ""};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct process one = process_start(1, true, names[i], NULL);

        assert_false(process_tree_is_foreign(one.pid, getpid()));
        (void)process_end(&one, one.pid);
    }
}

static void whether_numbers_are_the_hosts_follows_from_the_namespace(void **state)
{
    char name[64] = "";

    (void)state;
    assert_true(readlink("/proc/self/ns/pid", name, sizeof(name) - 1) > 0);
    assert_int_equal(process_tree_knows_pids(), strcmp(name, "pid:[4026531836]") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descendants_are_not_foreign),
        cmocka_unit_test(siblings_and_ancestors_are_foreign),
        cmocka_unit_test(a_process_that_has_ended_is_nobodys),
        cmocka_unit_test(a_name_cannot_forge_the_parent),
        cmocka_unit_test(whether_numbers_are_the_hosts_follows_from_the_namespace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
