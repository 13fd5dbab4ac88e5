// Control groups in a tree of plain files: which group is taken over and which is not, and what is
// written to its files.
#include "common/mem.h"
#include "tests/support/daemon/cgroup_fixture.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void expect_refused(struct cgroup_fixture *fixture, int code, const char *text)
{
    struct cgroups *cgroups = NULL;

    assert_int_equal(cgroups_create(&cgroups, fixture->dir, &fixture->err), code);
    assert_null(cgroups);
    if (!strstr(fixture->err.text, text) || !strstr(fixture->err.text, fixture->dir)) {
        fail_msg("%s", fixture->err.text);
    }
}

static char *find(struct cgroup_fixture *fixture, const char *groups, const char *mounts)
{
    cgroup_write_text(fixture, "cgroup", groups);
    cgroup_write_text(fixture, "mountinfo", mounts);
    err_clear(&fixture->err);
    char *dir = NULL;
    if (cgroup_find_own(&dir, fixture->dir, &fixture->err) != 0) {
        assert_null(dir);
        assert_int_equal(fixture->err.code, ERR_NOT_FOUND);
    }
    return dir;
}

#define MOUNT(root, point, type) "31 23 0:28 " root " " point " rw shared:9 - " type " none rw\n"

static void the_own_group_is_found_in_every_kind_of_hierarchy(void **state)
{
    static const struct {
        const char *groups;
        const char *mounts;
        const char *dir; // NULL: there is none
    } host[] = {
        {"0::/system.slice/kcastd.service\n", MOUNT("/", "/sys/fs/cgroup", "cgroup2"),
         "/sys/fs/cgroup/system.slice/kcastd.service"},
        {"4:memory:/other\n0::/\n",
         MOUNT("/", "/sys/fs/cgroup", "tmpfs") MOUNT("/", "/sys/fs/cgroup/memory", "cgroup")
             MOUNT("/", "/sys/fs/cgroup/unified", "cgroup2"),
         "/sys/fs/cgroup/unified"},
        {"0::/box/a\n", MOUNT("/box", "/sys/fs/cgroup", "cgroup2"), "/sys/fs/cgroup/a"},
        {"0::/box\n", MOUNT("/box", "/sys/fs/cgroup", "cgroup2"), "/sys/fs/cgroup"},
        {"0::/boxes\n", MOUNT("/box", "/wrong", "cgroup2") MOUNT("/", "/sys/fs/cgroup", "cgroup2"),
         "/sys/fs/cgroup/boxes"},
        {"0::/boxes\n", MOUNT("/box", "/sys/fs/cgroup", "cgroup2"), NULL},
        {"0::/../outside\n", MOUNT("/", "/sys/fs/cgroup", "cgroup2"), NULL},
        {"0::/a\n", MOUNT("/", "/sys/fs/cgroup/memory", "cgroup"), NULL},
        {"0::/a\n", "cut off - cgroup2 none rw\n", NULL},
        {"4:memory:/other\n", MOUNT("/", "/sys/fs/cgroup", "cgroup2"), NULL},
        {"", "", NULL},
    };
    struct cgroup_fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_LEN(host); i++) {
        char *dir = find(fixture, host[i].groups, host[i].mounts);

        if (host[i].dir) {
            assert_non_null(dir);
            assert_string_equal(dir, host[i].dir);
        } else {
            assert_null(dir);
        }
        free(dir);
    }
}

static void a_group_without_the_mark_is_left_alone(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_write_text(fixture, "cgroup.procs", "");
    expect_refused(fixture, ERR_DENIED, "is not delegated: neither user.delegate");
    assert_false(cgroup_is_there(fixture, "kcastd"));
    cgroup_expect_text(fixture->dir, "cgroup.procs", "");
}

static void a_group_that_is_gone_is_named(void **state)
{
    struct cgroup_fixture *fixture = *state;

    assert_int_equal(rmdir(fixture->dir), 0);
    expect_refused(fixture, ERR_SYSTEM, "No such file");
    assert_int_equal(mkdir(fixture->dir, 0700), 0);
}

static void a_delegated_group_is_entered_and_its_controllers_handed_on(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, "cpuset cpu io memory hugetlb pids rdma\n");
    cgroup_take_over(fixture);
    cgroup_expect_text(fixture->dir, "kcastd/cgroup.procs", "0");
    cgroup_expect_text(fixture->dir, "cgroup.subtree_control", "+memory +pids");
    cgroup_expect_text(fixture->dir, "cgroup.procs", ""); // the daemon did not go back
    assert_string_equal(cgroups_controllers(fixture->cgroups), "memory pids");
    assert_string_equal(cgroups_dir(fixture->cgroups), fixture->dir);
}

static void controllers_that_are_not_there_are_not_asked_for(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, "hugetlb memory.low pids\n");
    cgroup_take_over(fixture);
    cgroup_expect_text(fixture->dir, "cgroup.subtree_control", "+pids");
    assert_string_equal(cgroups_controllers(fixture->cgroups), "pids");
}

static void without_controllers_nothing_is_handed_on(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, "hugetlb\n");
    cgroup_take_over(fixture);
    cgroup_expect_text(fixture->dir, "cgroup.subtree_control", "");
    assert_string_equal(cgroups_controllers(fixture->cgroups), "none");
}

static void a_group_that_refuses_controllers_is_left_again(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, "memory\n");
    cgroup_remove_file(fixture, "cgroup.subtree_control");
    expect_refused(fixture, ERR_SYSTEM, "controllers cannot be handed on");
    cgroup_expect_text(fixture->dir, "cgroup.procs", "0");
}

static void a_second_daemon_is_told_that_the_group_is_in_use(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, "memory\n");
    cgroup_take_over(fixture);
    expect_refused(fixture, ERR_BUSY, "another kcastd");
    cgroups_free(fixture->cgroups);
    fixture->cgroups = NULL;
    err_clear(&fixture->err);
    cgroup_take_over(fixture);
}

static void leftovers_of_a_killed_daemon_are_killed_and_removed(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, "");
    cgroup_make_dir(fixture, "exec-3");
    cgroup_make_dir(fixture, "exec-12");
    cgroup_write_text(fixture, "exec-12/cgroup.kill", "");
    cgroup_make_dir(fixture, "exec-");
    cgroup_make_dir(fixture, "exec-4x");
    cgroup_make_dir(fixture, "execute");
    cgroup_take_over(fixture);
    assert_false(cgroup_is_there(fixture, "exec-3"));
    cgroup_expect_text(fixture->dir, "exec-12/cgroup.kill", "1");
    assert_true(cgroup_is_there(fixture, "exec-12")); // because it is not empty yet
    assert_true(cgroup_is_there(fixture, "exec-"));
    assert_true(cgroup_is_there(fixture, "exec-4x"));
    assert_true(cgroup_is_there(fixture, "execute"));
    cgroup_remove_file(fixture, "exec-12/cgroup.kill");
    cgroups_sweep(fixture->cgroups);
    assert_false(cgroup_is_there(fixture, "exec-12"));
}

static void limits_are_written_where_there_are_files_for_them(void **state)
{
    static const struct cgroup_limits all = {.memory = (uint64_t)8 << 30, .processes = 64};
    static const struct cgroup_limits none = {0};
    struct cgroup_fixture *fixture = *state;

    assert_int_equal(cgroup_limit(fixture->dir, &all, &fixture->err), 0);
    assert_false(cgroup_is_there(fixture, "memory.max")); // no file was created
    cgroup_write_text(fixture, "memory.max", "");
    cgroup_write_text(fixture, "pids.max", "");
    assert_int_equal(cgroup_limit(fixture->dir, &none, &fixture->err), 0);
    cgroup_expect_text(fixture->dir, "memory.max", "");
    cgroup_expect_text(fixture->dir, "pids.max", "");
    cgroup_write_text(fixture, "memory.swap.max", "");
    cgroup_write_text(fixture, "memory.oom.group", "");
    assert_int_equal(cgroup_limit(fixture->dir, &all, &fixture->err), 0);
    cgroup_expect_text(fixture->dir, "memory.max", "8589934592");
    cgroup_expect_text(fixture->dir, "memory.swap.max", "0");
    cgroup_expect_text(fixture->dir, "memory.oom.group", "1");
    cgroup_expect_text(fixture->dir, "pids.max", "64");
    cgroup_remove_file(fixture, "pids.max");
    cgroup_make_dir(fixture, "pids.max");
    assert_int_equal(cgroup_limit(fixture->dir, &all, &fixture->err), ERR_SYSTEM);
    assert_non_null(strstr(fixture->err.text, "pids.max"));
}

static void every_child_gets_a_group_of_a_new_number(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, "");
    cgroup_make_dir(fixture, "exec-7");
    cgroup_take_over(fixture);
    struct cgroup *cgroup = cgroup_new_cgroup(fixture);
    assert_string_equal(strrchr(cgroup_dir(cgroup), '/'), "/exec-8");
    assert_true(cgroup_is_there(fixture, "exec-8"));
    cgroup_end(cgroup);
    assert_false(cgroup_is_there(fixture, "exec-8"));
    cgroup_make_dir(fixture, "exec-9"); // somebody else has created the next one
    assert_int_equal(
        cgroup_create(&cgroup, fixture->cgroups, &(struct cgroup_limits){0}, &fixture->err),
        ERR_SYSTEM);
    assert_non_null(strstr(fixture->err.text, "exec-9"));
}

static void a_group_that_is_not_empty_yet_is_removed_by_a_sweep(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, "");
    cgroup_take_over(fixture);
    struct cgroup *cgroup = cgroup_new_cgroup(fixture);
    cgroup_write_text(fixture, "exec-1/cgroup.kill", "");
    cgroup_end(cgroup);
    cgroup_expect_text(fixture->dir, "exec-1/cgroup.kill", "1");
    cgroups_sweep(fixture->cgroups);
    assert_true(cgroup_is_there(fixture, "exec-1"));
    cgroup_remove_file(fixture, "exec-1/cgroup.kill");
    cgroups_sweep(fixture->cgroups);
    assert_false(cgroup_is_there(fixture, "exec-1"));
}

static void a_kill_for_memory_is_seen(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, "");
    cgroup_take_over(fixture);
    struct cgroup *cgroup = cgroup_new_cgroup(fixture);
    assert_false(cgroup_out_of_memory(cgroup));
    cgroup_write_text(fixture, "exec-1/memory.events", "low 0\nmax 9\noom 1\noom_kill 0\n");
    assert_false(cgroup_out_of_memory(cgroup));
    cgroup_write_text(fixture, "exec-1/memory.events",
                      "max 9\noom 1\noom_kill 2\noom_group_kill 1\n");
    assert_true(cgroup_out_of_memory(cgroup));
    cgroup_end(cgroup);
}

int main(void)
{
#define PLAIN(test) cmocka_unit_test_setup_teardown(test, cgroup_set_up, cgroup_tear_down)
    const struct CMUnitTest tests[] = {
        PLAIN(the_own_group_is_found_in_every_kind_of_hierarchy),
        PLAIN(a_group_without_the_mark_is_left_alone),
        PLAIN(a_group_that_is_gone_is_named),
        PLAIN(a_delegated_group_is_entered_and_its_controllers_handed_on),
        PLAIN(controllers_that_are_not_there_are_not_asked_for),
        PLAIN(without_controllers_nothing_is_handed_on),
        PLAIN(a_group_that_refuses_controllers_is_left_again),
        PLAIN(a_second_daemon_is_told_that_the_group_is_in_use),
        PLAIN(leftovers_of_a_killed_daemon_are_killed_and_removed),
        PLAIN(limits_are_written_where_there_are_files_for_them),
        PLAIN(every_child_gets_a_group_of_a_new_number),
        PLAIN(a_group_that_is_not_empty_yet_is_removed_by_a_sweep),
        PLAIN(a_kill_for_memory_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
