// Whose turn it is: equal shares of time between parties and within each, no credit for pauses.
#include "net/rpc/turns.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MEMBERS 8

struct fixture {
    struct turns turns;
    struct turns_party party[2];
    struct turns_member member[2][MEMBERS];
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    turns_init(&f->turns);
    for (size_t p = 0; p < 2; p++) {
        turns_party_init(&f->party[p], &f->turns);
        for (size_t m = 0; m < MEMBERS; m++) {
            turns_member_init(&f->member[p][m], &f->party[p]);
        }
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    while (turns_next(&f->turns)) {
    }
    for (size_t p = 0; p < 2; p++) {
        turns_party_release(&f->party[p]);
    }
    turns_release(&f->turns);
    free(f);
    return 0;
}

// Takes a turn of so much work, after which the member waits again. Returns its party.
static size_t take_turn(struct fixture *f, uint64_t work_ns)
{
    struct turns_member *member = turns_next(&f->turns);

    assert_non_null(member);
    turns_charge(member, work_ns);
    turns_wait(member);
    return member->party == &f->party[1];
}

static void a_party_of_many_gets_no_more_than_a_party_of_one(void **state)
{
    struct fixture *f = *state;
    size_t turns[2] = {0, 0};

    for (size_t m = 0; m < MEMBERS; m++) {
        turns_wait(&f->member[0][m]);
    }
    turns_wait(&f->member[1][0]);
    for (int i = 0; i < 100; i++) {
        turns[take_turn(f, 1000)]++;
    }
    assert_int_equal(turns[0], 50);
    assert_int_equal(turns[1], 50);
}

static void shares_are_of_time_and_not_of_turns(void **state)
{
    struct fixture *f = *state;
    size_t turns[2] = {0, 0};

    turns_wait(&f->member[0][0]);
    turns_wait(&f->member[1][0]);
    for (int i = 0; i < 110; i++) {
        struct turns_member *member = turns_next(&f->turns);
        size_t party = member->party == &f->party[1];

        turns_charge(member, party == 0 ? 10000 : 1000);
        turns_wait(member);
        turns[party]++;
    }
    assert_in_range(turns[0], 9, 11);
}

static void who_asks_little_goes_next(void **state)
{
    struct fixture *f = *state;

    for (size_t m = 1; m < MEMBERS; m++) {
        turns_wait(&f->member[0][m]);
    }
    for (int i = 0; i < 1000; i++) {
        (void)take_turn(f, 1000);
    }
    turns_wait(&f->member[0][0]); // of the same party
    bool came = false;
    for (int i = 0; i < MEMBERS && !came; i++) {
        struct turns_member *member = turns_next(&f->turns);

        came = member == &f->member[0][0];
        turns_charge(member, 1000);
        turns_wait(member);
    }
    assert_true(came);
    turns_wait(&f->member[1][0]); // of another party
    assert_true(take_turn(f, 1000) == 1 || take_turn(f, 1000) == 1);
}

// Somebody who paused does not have all the turns afterwards that he left to others.
static void a_pause_earns_nothing(void **state)
{
    struct fixture *f = *state;
    size_t turns[2] = {0, 0};

    turns_wait(&f->member[0][0]);
    for (int i = 0; i < 1000; i++) {
        (void)take_turn(f, 1000);
    }
    turns_wait(&f->member[1][0]);
    for (int i = 0; i < 20; i++) {
        turns[take_turn(f, 1000)]++;
    }
    assert_in_range(turns[0], 9, 11);
}

static void who_leaves_is_not_chosen(void **state)
{
    struct fixture *f = *state;

    turns_wait(&f->member[0][0]);
    turns_wait(&f->member[0][0]); // again: nothing changes
    turns_wait(&f->member[0][1]);
    turns_leave(&f->member[0][0]);
    turns_leave(&f->member[0][0]);
    assert_false(turns_is_waiting(&f->member[0][0]));
    turns_move(&f->member[0][1], &f->party[1]);
    assert_false(turns_any(&f->turns));
    turns_wait(&f->member[0][1]);
    assert_ptr_equal(turns_next(&f->turns), &f->member[0][1]);
    assert_null(turns_next(&f->turns));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_party_of_many_gets_no_more_than_a_party_of_one),
        TEST(shares_are_of_time_and_not_of_turns),
        TEST(who_asks_little_goes_next),
        TEST(a_pause_earns_nothing),
        TEST(who_leaves_is_not_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
