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
        cmocka_unit_test(a_seed_is_the_beginning_of_a_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
