// Limits of the blob store: many puts at once stay within them together, what waits is tried after
// a sweep, and the sweep counts what each tenant has sent.
#include "common/file.h"
#include "daemon/store/blob.h"
#include "daemon/store/blob_quota.h"
#include "daemon/store/blob_sweep.h"
#include "daemon/upkeep/sweeper.h"
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM BLOB_SWEEP_ROOM_MIN // that a small blob takes
#define PUTS 200

struct fixture {
    uv_loop_t loop;
    char *dir;
    struct blob_store *store;
    struct sweeper sweeper;
    struct setups *setups;
    struct job_table *jobs;
    struct daemon_parts parts;
    int stored, refused;
    char text[512]; // of the last refusal
};

static void on_put(void *owner, const struct err *error)
{
    struct fixture *f = owner;

    f->stored += !error;
    f->refused += error ? 1 : 0;
    if (error) {
        assert_int_equal(error->code, ERR_NO_SPACE);
        (void)snprintf(f->text, sizeof(f->text), "%s", error->text);
    }
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-limits", NULL), 0);
    assert_int_equal(blob_store_create(&f->store, &f->loop, f->dir, NULL), 0);
    f->parts = (struct daemon_parts){.blobs = f->store};
    f->setups = setups_create(&f->parts);
    f->jobs = job_table_create(1000, NULL);
    f->sweeper = (struct sweeper){.loop = &f->loop,
                                  .jobs = f->jobs,
                                  .setups = f->setups,
                                  .blobs = f->store,
                                  .max_bytes = 80 * ROOM};
    blob_store_limit(f->store, 80 * ROOM, 40 * ROOM);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    setups_free(f->setups);
    job_table_free(f->jobs);
    blob_store_free(f->store);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f);
    return 0;
}

static void tick(struct fixture *f)
{
    sweeper_tick(&f->sweeper);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
}

// Begins to put a blob with this number.
static struct digest put(struct fixture *f, const char *tenant, int number)
{
    const struct blob_caller caller = {.tenant = tenant, .name = tenant};
    char text[32];

    (void)snprintf(text, sizeof(text), "blob %d", number);
    struct digest digest = digest_of(text, strlen(text));
    struct bytes data = bytes_copy(text, strlen(text));
    blob_put(f->store, &caller, &digest, &data, false, on_put, f);
    return digest;
}

static uint64_t files_seen; // by count_file

static int count_file(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)path;
    (void)info;
    (void)where;
    files_seen += type == FTW_F;
    return 0;
}

static uint64_t bytes_there(struct fixture *f)
{
    files_seen = 0;
    assert_int_equal(nftw(f->dir, count_file, 8, FTW_PHYS), 0);
    return files_seen * (uint64_t)ROOM;
}

static int make_old(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)where;
    const struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    return type == FTW_F ? utimensat(AT_FDCWD, path, times, 0) : 0;
}

static void make_all_old(struct fixture *f)
{
    assert_int_equal(nftw(f->dir, make_old, 8, FTW_PHYS), 0);
}

// Skips the test where the file system keeps no extended attributes, so that a sweep cannot tell
// whose blobs are whose.
static void need_attributes(const struct fixture *f)
{
    if (setxattr(f->dir, BLOB_OWNER_ATTRIBUTE, "x", 1, 0) != 0) {
        print_message("skipped because the file system of TMPDIR has no extended attributes\n");
        skip();
    }
}

static void many_at_once_do_not_exceed_a_limit_together(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < PUTS; i++) {
        (void)put(f, "ann", i);
    }
    tick(f); // they have waited for the first count
    tick(f); // and those without room for a sweep, which removes nothing
    assert_int_equal(f->stored + f->refused, PUTS);
    assert_int_equal(f->stored, 40);
    assert_int_equal(bytes_there(f), 40 * ROOM);
    assert_non_null(strstr(f->text, "tenant ann has sent"));
    for (int i = 0; i < PUTS; i++) {
        (void)put(f, "ben", PUTS + i);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->stored, 70); // an eighth is for what the daemon makes
    assert_int_equal(bytes_there(f), 70 * ROOM);
    assert_non_null(strstr(f->text, "--blobs-max"));
}

// What is there already needs no room.
static void a_blob_that_is_there_may_be_sent_again(void **state)
{
    struct fixture *f = *state;

    tick(f);
    for (int i = 0; i < 40; i++) {
        (void)put(f, "ann", i);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    for (int i = 0; i < 40; i++) {
        (void)put(f, "ann", i);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->stored, 80);
    assert_int_equal(bytes_there(f), 40 * ROOM);
}

static void on_invalid(void *owner, const struct err *error)
{
    bool *refused = owner;

    assert_non_null(error);
    assert_int_equal(error->code, ERR_INVALID);
    *refused = true;
}

static void on_loaded(void *owner, const struct err *error, size_t failed, struct bytes *blobs,
                      size_t count)
{
    struct bytes *ret = owner;

    (void)failed;
    assert_null(error);
    assert_int_equal(count, 1);
    *ret = bytes_take(&blobs[0]);
}

static void on_missing(void *owner, const struct digest *missing, size_t count)
{
    (void)missing;
    *(size_t *)owner = count;
}

// Whoever has no room cannot have other bytes taken for those of a blob that is there, and a blob
// that was gone is known to be missing afterwards.
static void bytes_without_room_are_looked_at(void **state)
{
    struct fixture *f = *state;
    const struct blob_caller ann = {.tenant = "ann", .name = "ann"};
    struct bytes evil = bytes_copy("evil", 4), loaded = {0};
    bool refused = false;
    size_t missing = 0;

    tick(f);
    struct digest honest = put(f, "ben", 0);
    for (int i = 1; i <= 40; i++) {
        (void)put(f, "ann", i);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->stored, 41);
    blob_store_remember(f->store, 1 << 20); // it knows nothing yet, as after a restart
    blob_put(f->store, &ann, &honest, &evil, false, on_invalid, &refused);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(refused);
    blob_load(f->store, &honest, 1, on_loaded, &loaded);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(loaded.len, 6);
    assert_memory_equal(loaded.data, "blob 0", 6);
    bytes_clear(&loaded);
    char *path = blob_path(f->dir, &honest);
    assert_int_equal(unlink(path), 0);
    (void)put(f, "ann", 0);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    tick(f);
    assert_int_equal(f->refused, 1);
    blob_check(f->store, &ann, &honest, 1, on_missing, &missing);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(missing, 1);
    free(path);
}

// A tenant at its limit loses its own old blobs, and nobody else does.
static void old_blobs_of_a_full_tenant_go(void **state)
{
    struct fixture *f = *state;

    need_attributes(f);
    tick(f);
    struct digest others = put(f, "ben", 1000);
    for (int i = 0; i < 40; i++) {
        (void)put(f, "ann", i);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    make_all_old(f);
    (void)put(f, "ann", 41);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->stored, 41); // the last one waits
    tick(f);
    assert_int_equal(f->stored, 42);
    assert_int_equal(f->refused, 0);
    assert_int_equal(bytes_there(f), 38 * ROOM); // 36 of ann's, the new one, and ben's
    assert_true(blob_have(f->store, &others));
}

// A restart knows whose blobs are whose.
static void what_a_tenant_has_outlives_a_restart(void **state)
{
    struct fixture *f = *state;

    need_attributes(f);
    tick(f);
    for (int i = 0; i < 40; i++) {
        (void)put(f, "ann", i);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    blob_store_free(f->store);
    assert_int_equal(blob_store_create(&f->store, &f->loop, f->dir, NULL), 0);
    blob_store_limit(f->store, 80 * ROOM, 40 * ROOM);
    f->sweeper.blobs = f->store;
    f->sweeper.ticks = 0;
    f->sweeper.early = 0;
    tick(f);
    (void)put(f, "ann", 41);
    (void)put(f, "ben", 42);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    tick(f);
    assert_int_equal(f->stored, 41);
    assert_int_equal(f->refused, 1);
}

// When the daemon stops, nothing waits any more.
static void what_waits_ends_with_the_sweeper(void **state)
{
    struct fixture *f = *state;

    tick(f);
    for (int i = 0; i < 41; i++) {
        (void)put(f, "ann", i);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->refused, 0);
    sweeper_stop(&f->sweeper);
    assert_int_equal(f->refused, 1);
    (void)put(f, "ann", 42);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->refused, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_at_once_do_not_exceed_a_limit_together), TEST(bytes_without_room_are_looked_at),
        TEST(a_blob_that_is_there_may_be_sent_again),      TEST(old_blobs_of_a_full_tenant_go),
        TEST(what_a_tenant_has_outlives_a_restart),        TEST(what_waits_ends_with_the_sweeper),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
