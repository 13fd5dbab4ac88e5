#include "tests/common/file_fixture.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_dirs_makes_all_levels_and_repeats(void **state)
{
    char *path = in(state, "x//y/z/");
    char *file = in(state, "file");
    char *below = in(state, "file/sub");

    assert_int_equal(file_make_dirs(path, NULL), 0);
    assert_int_equal(file_make_dirs(path, NULL), 0);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    put(file, "");
    struct err err = ERR_INIT;
    assert_int_equal(file_make_dirs(file, &err), ERR_SYSTEM);
    assert_int_equal(file_make_dirs(below, NULL), ERR_SYSTEM);
    assert_int_equal(file_make_dirs("", NULL), ERR_INVALID);
    assert_int_equal(file_make_dirs("/", NULL), 0);
    free(path);
    free(file);
    free(below);
}

static void remove_tree_removes_all_but_follows_no_link(void **state)
{
    char *tree = in(state, "tree");
    char *deep = in(state, "tree/a/b/c");
    char *keep = in(state, "keep");
    char *kept = in(state, "keep/file");
    char *link_path = in(state, "tree/a/link");
    char *file = in(state, "tree/a/b/file");

    assert_int_equal(file_make_dirs(deep, NULL), 0);
    assert_int_equal(file_make_dirs(keep, NULL), 0);
    put(kept, "1");
    put(file, "2");
    assert_int_equal(symlink(keep, link_path), 0);
    assert_int_equal(file_remove_tree(tree, NULL), 0);
    assert_false(file_exists(tree));
    assert_content(kept, "1");
    assert_int_equal(file_remove_tree(tree, NULL), 0); // a path that does not exist
    assert_int_equal(symlink(keep, tree), 0);
    assert_int_equal(file_remove_tree(tree, NULL), 0); // removes the link and not its target
    assert_content(kept, "1");
    free(tree);
    free(deep);
    free(keep);
    free(kept);
    free(link_path);
    free(file);
}

static void remove_tree_refuses_endless_depth(void **state)
{
    char *tree = in(state, "t");
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(mkdir(tree, 0700), 0);
    assert_int_equal(chdir(tree), 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(mkdir("d", 0700), 0);
        assert_int_equal(chdir("d"), 0);
    }
    struct err err = ERR_INIT;
    assert_int_equal(file_remove_tree(tree, &err), ERR_LIMIT);
    // Climbing back up removes the rest for the fixture.
    for (int i = 0; i < 200; i++) {
        assert_int_equal(chdir(".."), 0);
        assert_int_equal(rmdir("d"), 0);
    }
    assert_int_equal(fchdir(here), 0);
    close(here);
    free(tree);
}

static void temp_dirs_obey_tmpdir_and_differ(void **state)
{
    struct fixture *fixture = *state;
    char *old = getenv("TMPDIR") ? xstrdup(getenv("TMPDIR")) : NULL;
    char *missing = in(state, "missing");

    setenv("TMPDIR", fixture->dir, 1);
    char *a = NULL;
    assert_int_equal(file_make_temp_dir(&a, "p", NULL), 0);
    char *b = NULL;
    assert_int_equal(file_make_temp_dir(&b, "p", NULL), 0);
    assert_string_not_equal(a, b);
    assert_memory_equal(a, fixture->dir, strlen(fixture->dir));
    setenv("TMPDIR", missing, 1);
    free(b);
    b = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(file_make_temp_dir(&b, "p", &err), ERR_SYSTEM);
    assert_null(b);
    if (old) {
        setenv("TMPDIR", old, 1);
    } else {
        unsetenv("TMPDIR");
    }
    free(a);
    free(old);
    free(missing);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(make_dirs_makes_all_levels_and_repeats),
        WITH_DIR(remove_tree_removes_all_but_follows_no_link),
        WITH_DIR(remove_tree_refuses_endless_depth),
        WITH_DIR(temp_dirs_obey_tmpdir_and_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
