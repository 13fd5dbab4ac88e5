// Blobs: what was stored comes back, what is damaged does not.
#include "common/file.h"
#include "daemon/store/blob.h"
#include "daemon/store/blob_sweep.h"
#include "tests/support/descriptors.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    uv_loop_t loop;
    char *dir;
    struct blob_store *store;
    // What the last callback got.
    enum err_code code;
    size_t failed;
    struct bytes blob[3];
    int calls;
};

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));

    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    struct err err = ERR_INIT;
    assert_int_equal(file_make_temp_dir(&fixture->dir, "kcast-blob", &err), 0);
    char *root = xasprintf("%s/a/blobs", fixture->dir);
    assert_int_equal(blob_store_create(&fixture->store, &fixture->loop, root, &err), 0);
    free(root);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    blob_store_free(fixture->store);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    assert_int_equal(file_remove_tree(fixture->dir, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        bytes_clear(&fixture->blob[i]);
    }
    free(fixture->dir);
    free(fixture);
    return 0;
}

static void on_put(void *owner, const struct err *error)
{
    struct fixture *fixture = owner;

    fixture->code = error ? error->code : ERR_NONE;
    fixture->calls++;
}

static void on_load(void *owner, const struct err *error, size_t failed, struct bytes *blobs,
                    size_t count)
{
    struct fixture *fixture = owner;

    fixture->code = error ? error->code : ERR_NONE;
    fixture->failed = failed;
    fixture->calls++;
    for (size_t i = 0; i < count && !error; i++) {
        bytes_clear(&fixture->blob[i]);
        fixture->blob[i] = blobs[i];
        blobs[i] = (struct bytes){0};
    }
}

static struct digest put(struct fixture *fixture, const char *text, enum err_code expected)
{
    struct digest digest = digest_of(text, strlen(text));
    struct bytes data = bytes_copy(text, strlen(text));

    blob_put(fixture->store, NULL, &digest, &data, true, on_put, fixture);
    assert_null(data.data);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(fixture->code, expected);
    return digest;
}

static enum err_code load(struct fixture *fixture, const struct digest *digests, size_t count)
{
    blob_load(fixture->store, digests, count, on_load, fixture);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    return fixture->code;
}

static char *path_of(const struct fixture *fixture, const struct digest *digest)
{
    char hex[DIGEST_HEX_LEN + 1];

    digest_hex(digest, hex);
    return xasprintf("%s/a/blobs/%.2s/%s", fixture->dir, hex, hex + 2);
}

// A process that was killed leaves what it was writing; the next one removes it.
static void half_written_files_do_not_stay(void **state)
{
    struct fixture *fixture = *state;
    char *root = xasprintf("%s/a/blobs", fixture->dir);
    char *half = xasprintf("%s/tmp/4711", root);
    struct digest digest = put(fixture, "whole", ERR_NONE);
    FILE *file = fopen(half, "w");

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    blob_store_free(fixture->store);
    fixture->store = NULL;
    assert_int_equal(blob_store_create(&fixture->store, &fixture->loop, root, NULL), 0);
    assert_false(file_exists(half));
    assert_true(blob_have(fixture->store, &digest));
    assert_int_equal(load(fixture, &digest, 1), ERR_NONE);
    free(half);
    free(root);
}

static void overwrite(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void what_was_put_is_loaded(void **state)
{
    struct fixture *fixture = *state;
    struct digest digest[2];

    digest[0] = put(fixture, "first", ERR_NONE);
    digest[1] = put(fixture, "", ERR_NONE); // an empty blob is valid
    assert_true(blob_have(fixture->store, &digest[0]));
    assert_int_equal(load(fixture, digest, 2), ERR_NONE);
    assert_string_equal((char *)fixture->blob[0].data, "first");
    assert_int_equal(fixture->blob[1].len, 0);
}

static void bytes_of_another_digest_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct digest digest = digest_of("one", 3);
    struct bytes data = bytes_copy("two", 3);

    blob_put(fixture->store, NULL, &digest, &data, false, on_put, fixture);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(fixture->code, ERR_INVALID);
    assert_false(blob_have(fixture->store, &digest));
}

static void a_missing_blob_is_named(void **state)
{
    struct fixture *fixture = *state;
    struct digest digest[2];

    digest[0] = put(fixture, "here", ERR_NONE);
    digest[1] = digest_of("not here", 8);
    assert_false(blob_have(fixture->store, &digest[1]));
    assert_int_equal(load(fixture, digest, 2), ERR_NOT_FOUND);
    assert_int_equal(fixture->failed, 1);
}

static void without_descriptors_a_blob_is_neither_missing_nor_damaged(void **state)
{
    struct fixture *fixture = *state;
    struct digest digest = put(fixture, "here", ERR_NONE);
    struct rlimit old = descriptors_take();
    enum err_code code = load(fixture, &digest, 1);

    descriptors_give_back(&old);
    assert_int_equal(code, ERR_BUSY);
    assert_int_equal(load(fixture, &digest, 1), ERR_NONE);
}

static void a_damaged_blob_is_removed_and_can_be_put_again(void **state)
{
    struct fixture *fixture = *state;
    struct digest digest = put(fixture, "intact", ERR_NONE);
    char *path = path_of(fixture, &digest);

    overwrite(path, "intacT");
    assert_int_equal(load(fixture, &digest, 1), ERR_CORRUPT);
    assert_false(blob_have(fixture->store, &digest));
    (void)put(fixture, "intact", ERR_NONE);
    assert_int_equal(load(fixture, &digest, 1), ERR_NONE);
    overwrite(path, "");
    (void)put(fixture, "intact", ERR_NONE); // replaces the damaged file
    assert_int_equal(load(fixture, &digest, 1), ERR_NONE);
    free(path);
}

// Whether the file is there is asked of the memory, which learns from puts, loads and checks.
static void what_was_used_lately_needs_no_file(void **state)
{
    struct fixture *fixture = *state;

    blob_store_remember(fixture->store, 1 << 20);
    struct digest digest[2] = {put(fixture, "first", ERR_NONE), put(fixture, "second", ERR_NONE)};
    char *path[2] = {path_of(fixture, &digest[0]), path_of(fixture, &digest[1])};

    assert_int_equal(unlink(path[0]), 0);
    assert_int_equal(load(fixture, digest, 2), ERR_NONE);
    assert_string_equal((char *)fixture->blob[0].data, "first");
    assert_string_equal((char *)fixture->blob[1].data, "second");
    // As in a daemon that has begun anew.
    blob_store_remember(fixture->store, 1 << 20);
    assert_int_equal(load(fixture, digest, 2), ERR_NOT_FOUND);
    assert_int_equal(fixture->failed, 0);
    assert_int_equal(load(fixture, &digest[1], 1), ERR_NONE);
    assert_int_equal(unlink(path[1]), 0);
    assert_int_equal(load(fixture, &digest[1], 1), ERR_NONE);
    free(path[0]);
    free(path[1]);
}

static void equal_puts_at_the_same_time_are_harmless(void **state)
{
    struct fixture *fixture = *state;
    size_t len = 200000;
    char *text = xcalloc(1, len + 1);

    memset(text, 'x', len);
    struct digest digest = digest_of(text, len);
    for (int i = 0; i < 16; i++) {
        struct bytes data = bytes_copy(text, len);

        blob_put(fixture->store, NULL, &digest, &data, i % 2 == 0, on_put, fixture);
    }
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(fixture->calls, 16);
    assert_int_equal(fixture->code, ERR_NONE);
    assert_int_equal(load(fixture, &digest, 1), ERR_NONE);
    free(text);
}

static void an_unwritable_store_says_so(void **state)
{
    struct fixture *fixture = *state;
    char *root = xasprintf("%s/a/blobs", fixture->dir);
    char *moved = xasprintf("%s/a/moved", fixture->dir);

    assert_int_equal(rename(root, moved), 0);
    overwrite(root, "a file where the folder was");
    (void)put(fixture, "nowhere", ERR_SYSTEM);
    assert_int_equal(unlink(root), 0);
    free(moved);
    free(root);
}

static void no_temporary_files_are_left(void **state)
{
    struct fixture *fixture = *state;
    struct digest digest = put(fixture, "content", ERR_NONE);
    char *path = path_of(fixture, &digest);
    char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 7);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0); // so nothing else was in it
    free(dir);
    free(path);
}

// --- sweeping

#define ROOM BLOB_SWEEP_ROOM_MIN // that a file of ten bytes takes

static void on_swept(void *owner, const struct blob_swept *swept)
{
    *(struct blob_swept *)owner = *swept;
}

static struct blob_swept sweep(struct fixture *fixture, uint64_t max_bytes,
                               const struct digest *keep, size_t count)
{
    char *root = xasprintf("%s/a/blobs", fixture->dir);
    static const atomic_bool stop;
    struct blob_swept swept = {0};
    struct blob_sweep how = {
        .root = root,
        .max_bytes = max_bytes,
        .grace_s = 100,
        .keep = count > 0 ? xmemdup(keep, count * sizeof(*keep)) : NULL,
        .keep_count = count,
        .stop = &stop,
    };

    blob_sweep(&fixture->loop, &how, on_swept, &swept);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    free(root);
    return swept;
}

static void age(const char *path, long seconds)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    times[0].tv_sec = times[1].tv_sec = info.st_mtim.tv_sec - seconds;
    times[0].tv_nsec = times[1].tv_nsec = 0;
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

// Ten files of ten bytes, each used before the next one.
static void put_ten(struct fixture *fixture, struct digest *digest)
{
    for (int i = 0; i < 10; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "0123456 %02d", i);
        digest[i] = put(fixture, text, ERR_NONE);
        char *path = path_of(fixture, &digest[i]);
        age(path, 2000 - 100 * i);
        free(path);
    }
}

static void is_there(const struct fixture *fixture, const struct digest *digest, bool there)
{
    char *path = path_of(fixture, digest);

    assert_int_equal(file_exists(path), there);
    free(path);
}

static void what_was_used_longest_ago_is_swept(void **state)
{
    struct fixture *fixture = *state;
    struct digest digest[10];

    put_ten(fixture, digest);
    struct blob_swept swept = sweep(fixture, 10 * ROOM, NULL, 0);
    assert_int_equal(swept.files, 10);
    assert_int_equal(swept.bytes, 10 * ROOM);
    assert_int_equal(swept.removed, 0);                 // exactly as much as is allowed
    assert_true(blob_have(fixture->store, &digest[0])); // this uses it again
    assert_int_equal(load(fixture, &digest[1], 1), ERR_NONE);
    (void)put(fixture, "0123456 02", ERR_NONE);
    swept = sweep(fixture, 8 * ROOM, &digest[3], 1); // down to 7.2 files, so three are removed
    assert_int_equal(swept.removed, 3);
    assert_int_equal(swept.removed_bytes, 3 * ROOM);
    assert_int_equal(swept.bytes, 7 * ROOM);
    for (int i = 0; i < 10; i++) {
        is_there(fixture, &digest[i], i < 4 || i > 6);
    }
}

static void what_is_needed_or_new_is_not_swept(void **state)
{
    struct fixture *fixture = *state;
    struct digest digest[10];

    put_ten(fixture, digest);
    assert_true(blob_have(fixture->store, &digest[9]));
    struct blob_swept swept = sweep(fixture, 1, digest, 9);
    assert_int_equal(swept.removed, 0);
    assert_int_equal(swept.bytes, 10 * ROOM);
    swept = sweep(fixture, 1, NULL, 0);
    assert_int_equal(swept.files, 1);
    is_there(fixture, &digest[9], true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_put_is_loaded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_of_another_digest_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_blob_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_descriptors_a_blob_is_neither_missing_nor_damaged,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(half_written_files_do_not_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_blob_is_removed_and_can_be_put_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_was_used_lately_needs_no_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(equal_puts_at_the_same_time_are_harmless, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_unwritable_store_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_temporary_files_are_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_used_longest_ago_is_swept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_needed_or_new_is_not_swept, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
