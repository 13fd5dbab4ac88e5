// The daemon's secret is drawn once and kept, and seeds follow from it.
#include "common/file.h"
#include "common/mem.h"
#include "daemon/store/secret.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char *dir;

static int set_up(void **state)
{
    *state = NULL;
    return file_make_temp_dir(&dir, "kcast-secret", NULL);
}

static int tear_down(void **state)
{
    int rc = file_remove_tree(dir, NULL);

    (void)state;
    free(dir);
    return rc;
}

static void it_is_drawn_once(void **state)
{
    char *path = xasprintf("%s/secret", dir);
    char *other_path = xasprintf("%s/other", dir);
    struct secret secret, again, other;

    (void)state;
    assert_int_equal(secret_open(&secret, path, NULL), 0);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(info.st_size, SECRET_LEN);
    assert_int_equal(secret_open(&again, path, NULL), 0);
    assert_memory_equal(&secret, &again, sizeof(secret));
    assert_int_equal(secret_open(&other, other_path, NULL), 0);
    assert_memory_not_equal(&secret, &other, sizeof(secret));
    free(other_path);
    free(path);
}

static void what_is_none_is_told(void **state)
{
    char *path = xasprintf("%s/secret", dir);

    (void)state;
    assert_int_equal(file_replace(path, "short", 5, false, NULL), 0);
    assert_int_equal(chmod(path, 0600), 0);
    struct secret secret;
    struct err err = ERR_INIT;
    assert_int_equal(secret_open(&secret, path, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, path));
    free(path);
    path = xasprintf("%s/nowhere/secret", dir);
    err_clear(&err);
    assert_int_equal(secret_open(&secret, path, &err), ERR_SYSTEM);
    free(path);
}

static void one_that_others_could_know_is_refused(void **state)
{
    static const mode_t refused[] = {0640, 0604, 0620, 0602, 0660};
    char *path = xasprintf("%s/secret", dir);
    struct secret secret;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(secret_open(&secret, path, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_int_equal(chmod(path, refused[i]), 0);
        err_clear(&err);
        assert_int_equal(secret_open(&secret, path, &err), ERR_DENIED);
        assert_non_null(strstr(err.text, "chmod 600"));
    }
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(secret_open(&secret, path, NULL), 0);
    free(path);
}

// A daemon that was killed while it drew its secret has left a part of one under another name.
static void what_a_killed_daemon_left_does_not_matter(void **state)
{
    char *path = xasprintf("%s/secret", dir);
    char *part = xasprintf("%s.new", path);
    struct secret secret;
    struct stat info;

    (void)state;
    assert_int_equal(file_replace(part, "half", 4, false, NULL), 0);
    assert_int_equal(chmod(part, 0666), 0);
    assert_int_equal(secret_open(&secret, path, NULL), 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    free(part);
    free(path);
}

static void a_seed_is_the_beginning_of_a_digest(void **state)
{
    struct secret secret = {{1, 2, 3}};
    struct digest problem = {{4}}, source = {{5}}, digest;
    uint64_t seed = secret_hidden_seed(&secret, &problem, &source);

    (void)state;
    unsigned char all[SECRET_LEN + 2 * DIGEST_LEN] = {1, 2, 3, [SECRET_LEN] = 4,
                                                      [SECRET_LEN + DIGEST_LEN] = 5};
    digest = digest_of(all, sizeof(all));
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal((unsigned char)(seed >> (8 * i)), digest.byte[i]);
    }
    source.byte[0] = 6;
    assert_true(secret_hidden_seed(&secret, &problem, &source) != seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_drawn_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_none_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_others_could_know_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_killed_daemon_left_does_not_matter, set_up,
                                        tear_down),
        cmocka_unit_test(a_seed_is_the_beginning_of_a_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
