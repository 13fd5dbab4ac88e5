#include "common/mailbox.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include "common/mem.h"
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#define THREADS 4
#define LETTERS 5000

struct office {
    uv_loop_t loop;        // owned by the test's thread
    struct mailbox *box;   // under test
    int next[THREADS];     // number of the letter expected from each thread
    int delivered;         // so far
    int close_after;       // letters after which a delivery closes the box
    pthread_t loop_thread; // the only one that may deliver
    bool wrong;            // order or thread was wrong
};

struct letter {
    struct mail mail;      // first member: a mail is a letter
    struct office *office; // where it is delivered
    int sender;            // thread number
    int number;            // within the sender
};

struct sender {
    struct office *office; // to post to
    int id;                // thread number
    int kept;              // letters that were not accepted
};

static void on_letter(struct mail *mail)
{
    struct letter *letter = (struct letter *)mail;
    struct office *office = letter->office;

    if (office->next[letter->sender]++ != letter->number ||
        !pthread_equal(pthread_self(), office->loop_thread)) {
        office->wrong = true;
    }
    if (++office->delivered == office->close_after) {
        mailbox_close(office->box);
    }
    free(letter);
}

static bool send_letter(struct office *office, int sender, int number)
{
    struct letter *letter = xcalloc(1, sizeof(*letter));

    *letter = (struct letter){
        .mail = {.deliver = on_letter}, .office = office, .sender = sender, .number = number};
    if (mailbox_post(office->box, &letter->mail)) {
        return true;
    }
    free(letter);
    return false;
}

static void *send_all(void *arg)
{
    struct sender *sender = arg;

    for (int i = 0; i < LETTERS; i++) {
        sender->kept += send_letter(sender->office, sender->id, i) ? 0 : 1;
    }
    return NULL;
}

static void open_office(struct office *office, int close_after)
{
    *office = (struct office){.close_after = close_after, .loop_thread = pthread_self()};
    assert_int_equal(uv_loop_init(&office->loop), 0);
    assert_int_equal(mailbox_create(&office->box, &office->loop, NULL), 0);
}

static void finish_office(struct office *office)
{
    assert_int_equal(uv_run(&office->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&office->loop), 0);
    assert_false(office->wrong);
}

static void letters_of_four_threads_arrive_in_order_on_the_loop_thread(void **state)
{
    (void)state;
    struct office office;
    open_office(&office, THREADS * LETTERS);
    struct sender sender[THREADS];
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++) {
        sender[t] = (struct sender){.office = &office, .id = t};
        assert_int_equal(pthread_create(&thread[t], NULL, send_all, &sender[t]), 0);
    }
    // The last letter closes the box, which ends the loop.
    assert_int_equal(uv_run(&office.loop, UV_RUN_DEFAULT), 0);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
        assert_int_equal(sender[t].kept, 0);
        assert_int_equal(office.next[t], LETTERS);
    }
    finish_office(&office);
    assert_int_equal(office.delivered, THREADS * LETTERS);
}

static void letters_posted_while_closing_are_delivered_or_kept(void **state)
{
    (void)state;
    struct office office;
    open_office(&office, 0);
    struct sender sender[THREADS];
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++) {
        sender[t] = (struct sender){.office = &office, .id = t};
        assert_int_equal(pthread_create(&thread[t], NULL, send_all, &sender[t]), 0);
    }
    while (office.delivered == 0) {
        uv_run(&office.loop, UV_RUN_ONCE);
    }
    mailbox_close(office.box);
    int kept = 0;
    // The memory lives until the loop runs again: the threads may still try to post.
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
        kept += sender[t].kept;
    }
    finish_office(&office);
    assert_int_equal(office.delivered + kept, THREADS * LETTERS);
}

static void close_delivers_what_was_posted_and_refuses_more(void **state)
{
    (void)state;
    struct office office;
    open_office(&office, 0);
    assert_true(send_letter(&office, 0, 0));
    assert_true(send_letter(&office, 0, 1));
    assert_int_equal(office.delivered, 0);
    mailbox_close(office.box);
    assert_int_equal(office.delivered, 2);
    assert_false(send_letter(&office, 0, 2));
    mailbox_close(office.box); // a second close does nothing
    mailbox_close(NULL);
    finish_office(&office);
    assert_int_equal(office.delivered, 2);
}

static void close_from_a_delivery_keeps_the_order(void **state)
{
    (void)state;
    struct office office;
    open_office(&office, 2);
    for (int i = 0; i < 5; i++) {
        assert_true(send_letter(&office, 0, i));
    }
    finish_office(&office);
    assert_int_equal(office.delivered, 5);
}

static void on_first(struct mail *mail)
{
    struct letter *letter = (struct letter *)mail;

    letter->office->delivered++;
    // The same mail is delivered again in the usual way. Twice in one batch would be an error.
    letter->mail.deliver = on_letter;
    assert_true(mailbox_post(letter->office->box, &letter->mail));
}

static void delivery_may_post_the_mail_again(void **state)
{
    struct letter *letter = xcalloc(1, sizeof(*letter));

    (void)state;
    struct office office;
    open_office(&office, 2);
    *letter = (struct letter){.mail = {.deliver = on_first}, .office = &office};
    assert_true(mailbox_post(office.box, &letter->mail));
    finish_office(&office);
    assert_int_equal(office.delivered, 2);
    assert_int_equal(office.next[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_of_four_threads_arrive_in_order_on_the_loop_thread),
        cmocka_unit_test(letters_posted_while_closing_are_delivered_or_kept),
        cmocka_unit_test(close_delivers_what_was_posted_and_refuses_more),
        cmocka_unit_test(close_from_a_delivery_keeps_the_order),
        cmocka_unit_test(delivery_may_post_the_mail_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
