// Checks of blobs: what a caller asks while earlier questions of it are under way is looked at
// together, in batches that are bounded, and each question gets its own answer.
#include "common/file.h"
#include "daemon/store/blob.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define AT_ONCE 2 // batches of one caller that are under way at once, each of one check at first
#define BATCH 32  // checks of one batch
#define MANY 200

struct question {
    struct fixture *fixture;
    size_t number;
    bool missing;
};

struct fixture {
    uv_loop_t loop;
    char *dir;
    struct blob_store *store;
    struct digest digest[MANY];
    struct question question[MANY];
    size_t order[MANY]; // numbers of questions, as they were answered
    size_t asked, answered;
    bool made; // the blobs of all questions were made
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-check", NULL), 0);
    assert_int_equal(blob_store_create(&f->store, &f->loop, f->dir, NULL), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    blob_store_free(f->store);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f);
    return 0;
}

static void make_blob(const struct fixture *f, const struct digest *digest)
{
    char *path = blob_path(f->dir, digest);
    char *folder = xstrndup(path, strlen(path) - strlen(strrchr(path, '/')));

    assert_int_equal(file_make_dirs(folder, NULL), 0);
    assert_int_equal(file_replace(path, "x", 1, false, NULL), 0);
    free(folder);
    free(path);
}

// The first answer to a question that had to wait has the blobs of all of them made. A question is
// answered by what was there when it was looked at.
static void on_checked(void *owner, const struct digest *missing, size_t count)
{
    struct question *question = owner;
    struct fixture *f = question->fixture;

    assert_true(count <= 1);
    question->missing = count == 1;
    if (count == 1) {
        assert_true(digest_equal(&missing[0], &f->digest[question->number]));
    }
    f->order[f->answered++] = question->number;
    if (question->number >= AT_ONCE && !f->made) {
        f->made = true;
        assert_int_equal(count, 1);
        for (size_t i = 0; i < f->asked; i++) {
            make_blob(f, &f->digest[i]);
        }
    }
}

static void ask(struct fixture *f, size_t count)
{
    const struct blob_caller caller = {.tenant = "ann", .name = "ann"};

    for (size_t i = 0; i < count; i++) {
        f->digest[i] = digest_of(&i, sizeof(i));
        f->question[i] = (struct question){.fixture = f, .number = i};
        f->asked++;
        blob_check(f->store, &caller, &f->digest[i], 1, on_checked, &f->question[i]);
    }
    assert_int_equal(f->answered, 0); // never inside blob_check
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->answered, count);
}

static void what_waits_is_looked_at_together(void **state)
{
    struct fixture *f = *state;

    ask(f, AT_ONCE + 10);
    for (size_t i = 0; i < f->asked; i++) {
        assert_true(f->question[i].missing);
    }
}

// Until a reader finds its file missing, what was there a moment ago is not looked for again.
static void what_is_known_is_not_looked_for(void **state)
{
    struct fixture *f = *state;

    blob_store_remember(f->store, 1 << 20);
    for (size_t i = 0; i < 4; i++) {
        f->digest[i] = digest_of(&i, sizeof(i));
        make_blob(f, &f->digest[i]);
    }
    f->made = true;
    ask(f, 4);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    f->answered = f->asked = 0;
    ask(f, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(f->question[i].missing, i == 4);
    }
}

// Two batches are under way when the first of their answers comes; one more may begin before it.
static void a_batch_is_bounded(void **state)
{
    struct fixture *f = *state;

    ask(f, MANY);
    assert_true(f->made);
    for (size_t i = AT_ONCE + 3 * BATCH; i < MANY; i++) {
        assert_false(f->question[i].missing);
    }
}

static void answers_of_a_batch_come_in_the_order_of_questions(void **state)
{
    struct fixture *f = *state;

    ask(f, AT_ONCE + BATCH);
    size_t next = AT_ONCE;
    for (size_t i = 0; i < f->answered; i++) {
        if (f->order[i] >= AT_ONCE) {
            assert_int_equal(f->order[i], next++);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_waits_is_looked_at_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_known_is_not_looked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_batch_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answers_of_a_batch_come_in_the_order_of_questions, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
