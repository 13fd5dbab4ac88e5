// Handlers of requests about blobs: the loop thread never waits for the disk.
#include "common/file.h"
#include "daemon/dispatch.h"
#include "daemon/jobs/submission.h"
#include "daemon/sched/account.h"
#include "daemon/state/counters.h"
#include "daemon/state/job_table.h"
#include "daemon/store/blob.h"
#include "proto/verdict.h"
#include "tests/support/service_pair.h"
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

// --- replacements of the C library's functions, which count calls about files of the store

static pthread_t loop_thread;
static atomic_uint on_loop, elsewhere;

static void note(const char *path)
{
    if (strstr(path, "/blobs/")) {
        atomic_fetch_add(pthread_equal(pthread_self(), loop_thread) ? &on_loop : &elsewhere, 1);
    }
}

int access(const char *path, int mode)
{
    note(path);
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

int stat(const char *restrict path, struct stat *restrict info)
{
    note(path);
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, 0);
}

int utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
    note(path);
    return (int)syscall(SYS_utimensat, dir, path, times, flags);
}

// --- the parts of the daemon that a request about blobs needs

struct fixture {
    struct service_pair pair;
    char *dir;
    struct blob_store *blobs;
    struct account_table *accounts;
    struct job_table *jobs;
    struct submissions *submissions;
    struct counters counters;
    struct daemon_parts parts;
    struct dispatch *dispatch;
    int puts;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    service_pair_init(&f->pair);
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-dispatch", NULL), 0);
    char *root = xasprintf("%s/blobs", f->dir);
    assert_int_equal(blob_store_create(&f->blobs, &f->pair.loop, root, NULL), 0);
    free(root);
    f->accounts = accounts_create();
    f->jobs = job_table_create(1, f->accounts);
    f->parts = (struct daemon_parts){
        .limits = {.queue_max = 10, .jobs_max = 10},
        .jobs = f->jobs,
        .blobs = f->blobs,
        .counters = &f->counters,
    };
    f->submissions = f->parts.submissions = submissions_create(&f->parts);
    f->dispatch = dispatch_create(&f->parts);
    service_pair_open(&f->pair, dispatch_request, f->dispatch);
    loop_thread = pthread_self();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    service_pair_close(&f->pair);
    dispatch_free(f->dispatch);
    submissions_free(f->submissions);
    job_table_free(f->jobs);
    accounts_free(f->accounts);
    blob_store_free(f->blobs);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f);
    return 0;
}

static void on_put(void *owner, const struct err *error)
{
    struct fixture *f = owner;

    assert_null(error);
    f->puts--;
}

static struct digest put(struct fixture *f, const char *text)
{
    struct digest digest = digest_of(text, strlen(text));
    struct bytes data = bytes_copy(text, strlen(text));

    f->puts++;
    blob_put(f->blobs, NULL, &digest, &data, false, on_put, f);
    while (f->puts > 0) {
        (void)uv_run(&f->pair.loop, UV_RUN_ONCE);
    }
    atomic_store(&on_loop, 0);
    atomic_store(&elsewhere, 0);
    return digest;
}

static void blobs_are_looked_for_beside_the_loop(void **state)
{
    struct fixture *f = *state;
    struct digest digests[1000];
    struct blob_have body = {.digests = digests, .digests_count = 1000};

    for (size_t i = 0; i < 1000; i++) {
        digests[i] = digest_of(&i, sizeof(i));
    }
    digests[1] = put(f, "first");
    digests[998] = put(f, "second");
    struct blob_missing reply;
    struct err err;
    if (service_pair_call(&f->pair, OP_BLOB_HAVE, &blob_have_message, &body, &blob_missing_message,
                          &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(reply.digests_count, 998);
    for (size_t i = 0; i < 998; i++) { // in their order
        assert_true(digest_equal(&reply.digests[i], &digests[i < 1 ? i : i < 997 ? i + 1 : i + 2]));
    }
    message_clear(&blob_missing_message, &reply);
    assert_int_equal(atomic_load(&on_loop), 0);
    assert_true(atomic_load(&elsewhere) >= 1000);
}

static void nothing_is_missing_where_nothing_is_asked_for(void **state)
{
    struct fixture *f = *state;
    struct digest none;
    struct blob_have body = {.digests = &none, .digests_count = 0};
    struct blob_missing reply;
    struct err err;

    if (service_pair_call(&f->pair, OP_BLOB_HAVE, &blob_have_message, &body, &blob_missing_message,
                          &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(reply.digests_count, 0);
    message_clear(&blob_missing_message, &reply);
}

static void a_job_without_its_blobs_is_refused_beside_the_loop(void **state)
{
    struct fixture *f = *state;
    struct job_spec spec;

    message_init(&job_spec_message, &spec);
    spec.kind = JOB_MEASURE;
    spec.problem = put(f, "problem");
    spec.reference = put(f, "reference");
    spec.baseline = put(f, "baseline");
    spec.candidate = digest_of("candidate", 9);
    struct submit body;
    message_init(&submit_message, &body);
    body.search = (char *)(uintptr_t) "search";
    body.key = (char *)(uintptr_t) "key";
    body.spec = &spec;
    struct submitted reply;
    struct err err;
    assert_int_equal(service_pair_call(&f->pair, OP_SUBMIT, &submit_message, &body,
                                       &submitted_message, &reply, &err),
                     ERR_NEED_BLOB);
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&spec.candidate, hex);
    assert_non_null(strstr(err.text, hex));
    digest_hex(&spec.problem, hex);
    assert_null(strstr(err.text, hex));
    assert_int_equal(job_table_count(f->jobs), 0);
    assert_int_equal(atomic_load(&on_loop), 0);
    assert_true(atomic_load(&elsewhere) >= 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(blobs_are_looked_for_beside_the_loop),
        TEST(nothing_is_missing_where_nothing_is_asked_for),
        TEST(a_job_without_its_blobs_is_refused_beside_the_loop),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
