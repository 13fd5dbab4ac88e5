// A folder that stands for a control group, or is one, and what is written to its files.
#ifndef TESTS_SUPPORT_DAEMON_CGROUP_FIXTURE_H
#define TESTS_SUPPORT_DAEMON_CGROUP_FIXTURE_H

#include "common/err.h"
#include "daemon/run/cgroup.h"
#include <stdbool.h>

struct cgroup_fixture {
    char *dir;  // the group that is, or is not, delegated
    char *home; // real: the group that the test runs in
    struct cgroups *cgroups;
    struct err err;
};

void cgroup_write_text(const struct cgroup_fixture *fixture, const char *name, const char *text);
void cgroup_expect_text(const char *dir, const char *name, const char *expected);
void cgroup_make_dir(const struct cgroup_fixture *fixture, const char *name);
bool cgroup_is_there(const struct cgroup_fixture *fixture, const char *name);
void cgroup_remove_file(const struct cgroup_fixture *fixture, const char *name);
int cgroup_set_up(void **state);
int cgroup_tear_down(void **state);
// Marks the folder as delegated; skips the test where that is impossible.
void cgroup_mark(const struct cgroup_fixture *fixture);
// What a delegated group looks like. The kernel makes the files of a new group; here they are there
// before.
void cgroup_imitate(const struct cgroup_fixture *fixture, const char *controllers);
void cgroup_take_over(struct cgroup_fixture *fixture);
struct cgroup *cgroup_new_cgroup(struct cgroup_fixture *fixture);

#endif
