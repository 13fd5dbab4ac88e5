#include "tests/common/file_fixture.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int entries(const char *path)
{
    DIR *dir = opendir(path);

    assert_non_null(dir);
    int count = 0;
    while (readdir(dir)) {
        count++;
    }
    closedir(dir);
    return count - 2;
}

static void replace_then_read_returns_the_same(void **state)
{
    char *path = in(state, "a");

    put(path, "one");
    assert_content(path, "one");
    assert_int_equal(file_replace(path, "two!", 4, true, NULL), 0);
    assert_content(path, "two!");
    put(path, "");
    assert_content(path, "");
    assert_int_equal(entries(((struct fixture *)*state)->dir), 1);
    free(path);
}

static void read_respects_the_limit_exactly(void **state)
{
    char *path = in(state, "a");
    char *big = xcalloc(1, 40000);

    assert_int_equal(file_replace(path, big, 40000, false, NULL), 0);
    struct bytes bytes = {0};
    assert_int_equal(file_read(&bytes, path, 40000, NULL), 0);
    assert_int_equal(bytes.len, 40000);
    assert_int_equal(bytes.data[40000], 0);
    bytes_clear(&bytes);
    struct err err = ERR_INIT;
    assert_int_equal(file_read(&bytes, path, 39999, &err), ERR_LIMIT);
    assert_non_null(strstr(err.text, path));
    assert_null(bytes.data);
    put(path, "");
    assert_int_equal(file_read(&bytes, path, 0, NULL), 0);
    assert_non_null(bytes.data);
    bytes_clear(&bytes);
    free(big);
    free(path);
}

static void read_of_missing_is_not_found(void **state)
{
    struct bytes bytes = {0};
    struct err err = ERR_INIT;
    char *path = in(state, "missing");

    assert_int_equal(file_read(&bytes, path, 10, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, path));
    free(path);
}

static void read_refuses_what_is_no_regular_file(void **state)
{
    struct bytes bytes = {0};
    struct err err = ERR_INIT;
    char *path = in(state, "fifo");

    assert_int_equal(file_read(&bytes, "/", 10, &err), ERR_INVALID);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(file_read(&bytes, path, 10, NULL), ERR_INVALID); // does not hang
    free(path);
}

static void read_fd_reads_files_without_a_size(void **state)
{
    (void)state;
    struct bytes bytes = {0};
    assert_int_equal(file_read(&bytes, "/proc/self/status", 1 << 20, NULL), 0);
    assert_true(bytes.len > 100);
    bytes_clear(&bytes);
}

struct feeder {
    int fd;     // write end
    size_t len; // how much
    int rc;     // of file_write_fd
};

static void *feed(void *arg)
{
    struct feeder *feeder = arg;
    char *data = xmalloc(feeder->len);

    memset(data, 'z', feeder->len);
    feeder->rc = file_write_fd(feeder->fd, data, feeder->len, "pipe", NULL);
    close(feeder->fd);
    free(data);
    return NULL;
}

// The data are larger than the pipe and neither end blocks: both sides meet EAGAIN and short
// transfers.
static void pipes_are_read_and_written_whole(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    struct feeder feeder = {.len = 3000000};
    feeder.fd = fds[1];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
    struct bytes bytes = {0};
    assert_int_equal(file_read_fd(&bytes, fds[0], feeder.len, "pipe", NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(feeder.rc, 0);
    assert_int_equal(bytes.len, feeder.len);
    assert_int_equal(bytes.data[feeder.len - 1], 'z');
    bytes_clear(&bytes);
    close(fds[0]);
}

static void read_fd_stops_beyond_the_limit(void **state)
{
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

    (void)state;
    struct bytes bytes = {0};
    struct err err = ERR_INIT;
    assert_int_equal(file_read_fd(&bytes, fd, 100000, "zeros", &err), ERR_LIMIT);
    assert_non_null(strstr(err.text, "zeros"));
    assert_null(bytes.data);
    close(fd);
}

static void full_disk_is_no_space(void **state)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(file_write_fd(fd, "x", 1, "log", &err), ERR_NO_SPACE);
    assert_int_equal(err.code, ERR_NO_SPACE);
    assert_non_null(strstr(err.text, "log"));
    close(fd);
    assert_int_equal(file_write_fd(-1, "x", 1, "log", NULL), ERR_SYSTEM);
    assert_int_equal(file_write_fd(-1, NULL, 0, "log", NULL), 0);
}

static void failed_replace_leaves_old_file_and_no_temp(void **state)
{
    char *path = in(state, "a");
    char *big = xcalloc(1, 100000);

    put(path, "old");
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit small = old;
    small.rlim_cur = 5000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct err err = ERR_INIT;
    int rc = file_replace(path, big, 100000, true, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(rc, ERR_SYSTEM);
    assert_non_null(strstr(err.text, path));
    assert_content(path, "old");
    assert_int_equal(entries(((struct fixture *)*state)->dir), 1);
    free(big);
    free(path);
}

static void replace_over_a_folder_fails_and_leaves_no_temp(void **state)
{
    char *path = in(state, "folder");
    char *missing = in(state, "missing/a");

    assert_int_equal(mkdir(path, 0700), 0);
    struct err err = ERR_INIT;
    assert_int_equal(file_replace(path, "x", 1, false, &err), ERR_SYSTEM);
    assert_int_equal(file_replace(missing, "x", 1, false, NULL), ERR_SYSTEM);
    assert_int_equal(entries(((struct fixture *)*state)->dir), 1);
    free(path);
    free(missing);
}

static void replace_does_not_follow_a_planted_temp_link(void **state)
{
    char *path = in(state, "a");
    char *victim = in(state, "victim");
    char *temp = xasprintf("%s.tmp.%d", path, (int)gettid());

    put(victim, "precious");
    assert_int_equal(symlink(victim, temp), 0);
    put(path, "new");
    assert_content(victim, "precious");
    assert_content(path, "new");
    free(path);
    free(victim);
    free(temp);
}

static void names_and_places(void **state)
{
    (void)state;
    assert_string_equal(file_base_name("/a/b.cu"), "b.cu");
    assert_string_equal(file_base_name("b.cu"), "b.cu");
    assert_string_equal(file_base_name("/a/"), "");
    char *own = NULL;
    assert_int_equal(file_own_dir(&own, NULL), 0);
    char *self = xasprintf("%s/%s", own, program_invocation_short_name);
    assert_int_equal(own[0], '/');
    assert_true(file_exists(self));
    free(self);
    free(own);
}

static void a_secret_is_read_only_where_nobody_else_reads(void **state)
{
    static const mode_t refused[] = {0640, 0604, 0620, 0601, 0666};

    (void)state;
    char *dir = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(file_make_temp_dir(&dir, "kcast-private", &err), 0);
    char *path = xasprintf("%s/key", dir);
    assert_int_equal(file_replace(path, "key", 3, false, &err), 0);
    struct bytes data = {0};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        err_clear(&err);
        assert_int_equal(chmod(path, refused[i]), 0);
        assert_int_equal(file_read_private(&data, path, 10, &err), ERR_DENIED);
        assert_non_null(strstr(err.text, path));
    }
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(file_read_private(&data, path, 10, NULL), 0);
    assert_string_equal((char *)data.data, "key");
    file_wipe(&data);
    assert_null(data.data);
    file_wipe(&data);
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(file_read_private(&data, path, 2, NULL), ERR_LIMIT);
    assert_int_equal(file_remove_tree(dir, NULL), 0);
    free(path);
    free(dir);
}

// Only a program that root runs can open such a file at all.
static void a_secret_of_another_user_is_refused(void **state)
{
    if (geteuid() != 0) {
        skip();
    }
    char *path = in(state, "key");
    struct err err = ERR_INIT;

    put(path, "key");
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
    struct bytes data = {0};
    assert_int_equal(file_read_private(&data, path, 10, &err), ERR_DENIED);
    assert_non_null(strstr(err.text, "belongs to user 65534"));
    assert_non_null(strstr(err.text, "chmod 600"));
    assert_int_equal(file_read_private_of_anybody(&data, path, 10, NULL), 0);
    file_wipe(&data);
    assert_int_equal(chmod(path, 0620), 0);
    assert_int_equal(file_read_private_of_anybody(&data, path, 10, NULL), ERR_DENIED);
    assert_int_equal(chown(path, 0, (gid_t)-1), 0);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(file_read_private(&data, path, 10, NULL), 0);
    file_wipe(&data);
    free(path);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_read_only_where_nobody_else_reads),
        WITH_DIR(a_secret_of_another_user_is_refused),
        WITH_DIR(replace_then_read_returns_the_same),
        WITH_DIR(read_respects_the_limit_exactly),
        WITH_DIR(read_of_missing_is_not_found),
        WITH_DIR(read_refuses_what_is_no_regular_file),
        WITH_DIR(read_fd_reads_files_without_a_size),
        WITH_DIR(pipes_are_read_and_written_whole),
        WITH_DIR(read_fd_stops_beyond_the_limit),
        WITH_DIR(full_disk_is_no_space),
        WITH_DIR(failed_replace_leaves_old_file_and_no_temp),
        WITH_DIR(replace_over_a_folder_fails_and_leaves_no_temp),
        WITH_DIR(replace_does_not_follow_a_planted_temp_link),
        WITH_DIR(names_and_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
