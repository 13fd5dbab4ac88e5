// What the tests of files share: a folder of the test's own, and files in it.
#ifndef TESTS_COMMON_FILE_FIXTURE_H
#define TESTS_COMMON_FILE_FIXTURE_H

#include "common/file.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    char *dir; // this test's own folder
};

static inline int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    struct err err = ERR_INIT;

    if (file_make_temp_dir(&fixture->dir, "kcast-test-file", &err) != 0) {
        return -1;
    }
    *state = fixture;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;
    int rc = file_remove_tree(fixture->dir, &err);

    free(fixture->dir);
    free(fixture);
    return rc;
}

static inline char *in(void **state, const char *name)
{
    struct fixture *fixture = *state;

    return xasprintf("%s/%s", fixture->dir, name);
}

static inline void put(const char *path, const char *text)
{
    assert_int_equal(file_replace(path, text, strlen(text), false, NULL), 0);
}

static inline void assert_content(const char *path, const char *text)
{
    struct bytes bytes = {0};

    assert_int_equal(file_read(&bytes, path, 1 << 20, NULL), 0);
    assert_int_equal(bytes.len, strlen(text));
    assert_string_equal((char *)bytes.data, text);
    bytes_clear(&bytes);
}

#endif
