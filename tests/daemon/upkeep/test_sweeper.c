// Sweeping blobs: those that jobs and problems need stay, however old they are.
#include "common/file.h"
#include "daemon/store/blob.h"
#include "daemon/upkeep/sweeper.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { PROBLEM, REFERENCE, BASELINE, WAITING, OBJECT, DONE, NOBODYS, BLOBS };

struct fixture {
    uv_loop_t loop;
    char *dir;
    struct blob_store *store;
    struct digest digest[BLOBS];
};

static void on_put(void *owner, const struct err *error)
{
    (void)owner;
    assert_null(error);
}

static char *path_of(const struct fixture *fixture, int blob)
{
    char hex[DIGEST_HEX_LEN + 1];

    digest_hex(&fixture->digest[blob], hex);
    return xasprintf("%s/%.2s/%s", fixture->dir, hex, hex + 2);
}

// Stores a blob of ten bytes that was used last in 1970.
static void put_old(struct fixture *fixture, int blob)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "0123456 %02d", blob);
    fixture->digest[blob] = digest_of(text, strlen(text));
    struct bytes data = bytes_copy(text, strlen(text));
    blob_put(fixture->store, NULL, &fixture->digest[blob], &data, false, on_put, NULL);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    char *path = path_of(fixture, blob);
    const struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));

    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(file_make_temp_dir(&fixture->dir, "kcast-sweeper", NULL), 0);
    assert_int_equal(blob_store_create(&fixture->store, &fixture->loop, fixture->dir, NULL), 0);
    for (int i = 0; i < BLOBS; i++) {
        put_old(fixture, i);
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    blob_store_free(fixture->store);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    assert_int_equal(file_remove_tree(fixture->dir, NULL), 0);
    free(fixture->dir);
    free(fixture);
    return 0;
}

static void expect(const struct fixture *fixture, const bool *there)
{
    for (int i = 0; i < BLOBS; i++) {
        char *path = path_of(fixture, i);

        if (file_exists(path) != there[i]) {
            fail_msg("blob %d is %s", i, there[i] ? "gone" : "there");
        }
        free(path);
    }
}

static void tick(struct fixture *fixture, struct sweeper *sweeper)
{
    sweeper_tick(sweeper);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_false(sweeper_busy(sweeper));
}

static void what_jobs_need_stays(void **state)
{
    static const bool all[BLOBS] = {true, true, true, true, true, true, true};
    static const bool needed[BLOBS] = {true, true, true, true, true, false, false};
    static const bool none[BLOBS] = {false};
    struct fixture *fixture = *state;
    const struct daemon_parts parts = {.blobs = fixture->store};
    struct setups *setups = setups_create(&parts);
    struct job_table *jobs = job_table_create(1000, NULL);
    struct job *waiting = job_table_add(jobs, 1, "local", "s", "waiting", JOB_QUEUED);
    struct job *done = job_table_add(jobs, 2, "local", "s", "done", JOB_DONE);
    struct sweeper sweeper = {
        .loop = &fixture->loop,
        .jobs = jobs,
        .setups = setups,
        .blobs = fixture->store,
        .max_bytes = BLOBS * BLOB_SWEEP_ROOM_MIN,
    };
    const struct digest *digest = fixture->digest;

    waiting->setup =
        setup_acquire(setups, &digest[PROBLEM], &digest[REFERENCE], &digest[BASELINE], NULL);
    waiting->candidate = digest[WAITING];
    struct compiled compiled = {0};
    compiled.object = digest[OBJECT];
    job_carry_compiled(waiting, &compiled);
    done->candidate = digest[DONE];
    tick(fixture, &sweeper); // the first one
    expect(fixture, all);
    sweeper.max_bytes = 10;
    for (int i = 1; i < 600; i++) {
        tick(fixture, &sweeper);
    }
    expect(fixture, all); // not its time yet
    tick(fixture, &sweeper);
    expect(fixture, needed);
    setup_release(waiting->setup);
    waiting->setup = NULL;
    job_table_remove(jobs, waiting);
    job_table_free(jobs);
    setups_free(setups);

    setups = setups_create(&parts);
    jobs = job_table_create(1000, NULL);
    sweeper.setups = setups;
    sweeper.jobs = jobs;
    sweeper.ticks = 0;
    tick(fixture, &sweeper);
    expect(fixture, none);
    job_table_free(jobs);
    setups_free(setups);
}

static void wait_for_gate(uv_work_t *work)
{
    uv_sem_wait(work->data);
}

static void on_gate(uv_work_t *work, int status)
{
    (void)work;
    assert_int_equal(status, 0);
}

// When the daemon ends, the sweep in progress removes nothing more, and no other one begins.
static void a_stopped_sweep_removes_nothing(void **state)
{
    static const bool all[BLOBS] = {true, true, true, true, true, true, true};
    struct fixture *fixture = *state;
    const struct daemon_parts parts = {.blobs = fixture->store};
    struct setups *setups = setups_create(&parts);
    struct job_table *jobs = job_table_create(1000, NULL);
    struct sweeper sweeper = {
        .loop = &fixture->loop,
        .jobs = jobs,
        .setups = setups,
        .blobs = fixture->store,
        .max_bytes = 10,
        .stop = true,
    };
    uv_sem_t gate;
    uv_work_t work = {.data = &gate};

    tick(fixture, &sweeper); // none begins
    expect(fixture, all);
    sweeper.ticks = 0;
    sweeper.stop = false;
    assert_int_equal(uv_sem_init(&gate, 0), 0);
    assert_int_equal(uv_queue_work(&fixture->loop, &work, wait_for_gate, on_gate), 0);
    sweeper_tick(&sweeper);
    assert_true(sweeper_busy(&sweeper));
    sweeper_stop(&sweeper);
    uv_sem_post(&gate);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_false(sweeper_busy(&sweeper));
    expect(fixture, all);
    uv_sem_destroy(&gate);
    job_table_free(jobs);
    setups_free(setups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_jobs_need_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stopped_sweep_removes_nothing, set_up, tear_down),
    };

    (void)setenv("UV_THREADPOOL_SIZE", "1", 1); // so that a test can hold them all
    return cmocka_run_group_tests(tests, NULL, NULL);
}
