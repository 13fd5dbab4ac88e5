#include "tests/support/daemon/cgroup_fixture.h"
#include "common/file.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

void cgroup_write_text(const struct cgroup_fixture *fixture, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", fixture->dir, name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(path);
}

void cgroup_expect_text(const char *dir, const char *name, const char *expected)
{
    char *path = xasprintf("%s/%s", dir, name);
    struct bytes text = {0};

    assert_int_equal(file_read(&text, path, 4096, NULL), 0);
    assert_string_equal((char *)text.data, expected);
    bytes_clear(&text);
    free(path);
}

void cgroup_make_dir(const struct cgroup_fixture *fixture, const char *name)
{
    char *path = xasprintf("%s/%s", fixture->dir, name);

    assert_int_equal(mkdir(path, 0755), 0);
    free(path);
}

bool cgroup_is_there(const struct cgroup_fixture *fixture, const char *name)
{
    char *path = xasprintf("%s/%s", fixture->dir, name);
    bool there = file_exists(path);

    free(path);
    return there;
}

void cgroup_remove_file(const struct cgroup_fixture *fixture, const char *name)
{
    char *path = xasprintf("%s/%s", fixture->dir, name);

    assert_int_equal(unlink(path), 0);
    free(path);
}

int cgroup_set_up(void **state)
{
    struct cgroup_fixture *fixture = xcalloc(1, sizeof(*fixture));

    assert_int_equal(file_make_temp_dir(&fixture->dir, "kcast-cgroup", &fixture->err), 0);
    *state = fixture;
    return 0;
}

int cgroup_tear_down(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroups_free(fixture->cgroups);
    assert_int_equal(file_remove_tree(fixture->dir, NULL), 0);
    free(fixture->dir);
    free(fixture);
    return 0;
}

void cgroup_mark(const struct cgroup_fixture *fixture)
{
    if (setxattr(fixture->dir, "user.delegate", "1", 1, 0) != 0 &&
        setxattr(fixture->dir, "trusted.delegate", "1", 1, 0) != 0) {
        printf("skipped because %s takes no extended attributes: %s\n", fixture->dir,
               strerror(errno));
        skip();
    }
}

void cgroup_imitate(const struct cgroup_fixture *fixture, const char *controllers)
{
    cgroup_mark(fixture);
    cgroup_write_text(fixture, "cgroup.procs", "");
    cgroup_write_text(fixture, "cgroup.controllers", controllers);
    cgroup_write_text(fixture, "cgroup.subtree_control", "");
    cgroup_make_dir(fixture, "kcastd");
    cgroup_write_text(fixture, "kcastd/cgroup.procs", "");
}

void cgroup_take_over(struct cgroup_fixture *fixture)
{
    if (cgroups_create(&fixture->cgroups, fixture->dir, &fixture->err) != 0) {
        fail_msg("%s", fixture->err.text);
    }
}

struct cgroup *cgroup_new_cgroup(struct cgroup_fixture *fixture)
{
    static const struct cgroup_limits limits = {.memory = (uint64_t)4 << 30, .processes = 64};
    struct cgroup *cgroup = NULL;

    if (cgroup_create(&cgroup, fixture->cgroups, &limits, &fixture->err) != 0) {
        fail_msg("%s", fixture->err.text);
    }
    return cgroup;
}
