// Files whose names users have given: what is not a regular file stays what it is.
#include "tests/common/file_fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_named(const char *path, const char *text)
{
    struct err err = ERR_INIT;

    if (file_write_named(path, text, strlen(text), false, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static void a_regular_file_is_replaced(void **state)
{
    char *path = in(state, "a");

    write_named(path, "one");
    assert_content(path, "one");
    write_named(path, "two!");
    assert_content(path, "two!");
    free(path);
}

static void a_symbolic_link_is_followed(void **state)
{
    char *path = in(state, "a"), *link = in(state, "b");
    struct stat info;
    struct err err = ERR_INIT;

    put(path, "one");
    assert_int_equal(symlink("a", link), 0);
    write_named(link, "two!");
    assert_content(path, "two!");
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(file_write_named(link, "x", 1, false, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "a symbolic link to a file that is not there"));
    free(link);
    free(path);
}

static void a_fifo_is_written_into(void **state)
{
    char *path = in(state, "a"), buf[8] = "";
    struct stat info;

    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    write_named(path, "one");
    assert_int_equal(read(fd, buf, sizeof(buf)), 3);
    assert_string_equal(buf, "one");
    assert_int_equal(close(fd), 0);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    free(path);
}

static void a_folder_is_refused(void **state)
{
    const struct fixture *fixture = *state;
    struct err err = ERR_INIT;

    assert_int_equal(file_write_named(fixture->dir, "x", 1, false, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, fixture->dir));
}

static void what_is_read_is_not_written_to(void **state)
{
    char *path = in(state, "a"), *link = in(state, "b"), *other = in(state, "c");
    struct err err = ERR_INIT;

    put(path, "one");
    put(other, "one");
    assert_int_equal(symlink("a", link), 0);
    assert_int_equal(file_check_output(path, path, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "is the file that is read"));
    assert_int_equal(file_check_output(link, path, NULL), ERR_USAGE);
    assert_int_equal(file_check_output(path, link, NULL), ERR_USAGE);
    assert_int_equal(file_check_output(other, path, NULL), 0);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(file_check_output(other, path, NULL), 0);
    free(other);
    free(link);
    free(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_regular_file_is_replaced),     TEST(a_symbolic_link_is_followed),
        TEST(a_fifo_is_written_into),         TEST(a_folder_is_refused),
        TEST(what_is_read_is_not_written_to),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
