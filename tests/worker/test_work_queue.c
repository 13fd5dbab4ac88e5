// The work queue: items run one at a time and in order, or as many at a time as the queue is wide.
// Closing lets those that run finish and drops the others.
#include "worker/work_queue.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct trace {
    char text[32]; // one letter per event, in order; written by one thread at a time
    size_t len;
    sem_t begun, go;
};

struct job {
    struct work_item item;
    struct trace *trace;
    char name;
};

static void note(struct trace *trace, char c)
{
    trace->text[trace->len++] = c;
}

static void work(struct work_item *item)
{
    struct job *job = (struct job *)item;
    note(job->trace, job->name);
}

static void work_held(struct work_item *item)
{
    struct job *job = (struct job *)item;
    sem_post(&job->trace->begun);
    sem_wait(&job->trace->go);
    note(job->trace, job->name);
}

static void done(struct work_item *item, bool worked)
{
    struct job *job = (struct job *)item;
    note(job->trace, worked ? '+' : '-');
}

static void on_closed(void *owner)
{
    note(owner, '.');
}

static void items_run_one_after_another(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct work_queue *queue = work_queue_create(&loop, 1);
    struct trace trace = {.len = 0};
    struct job job[3];
    for (int i = 0; i < 3; i++) {
        job[i] = (struct job){{.work = work, .done = done}, &trace, (char)('a' + i)};
        work_queue_post(queue, &job[i].item);
    }
    assert_int_equal(work_queue_length(queue), 3);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(work_queue_length(queue), 0);
    work_queue_close(queue, on_closed, &trace);
    assert_string_equal(trace.text, "a+b+c+.");
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void closing_finishes_the_running_task_and_drops_the_others(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct trace trace = {.len = 0};
    sem_init(&trace.begun, 0, 0);
    sem_init(&trace.go, 0, 0);
    struct work_queue *queue = work_queue_create(&loop, 1);
    struct job job[3];
    for (int i = 0; i < 3; i++) {
        job[i] =
            (struct job){{.work = i ? work : work_held, .done = done}, &trace, (char)('a' + i)};
        work_queue_post(queue, &job[i].item);
    }
    sem_wait(&trace.begun);
    work_queue_close(queue, on_closed, &trace);
    assert_string_equal(trace.text, "--");
    sem_post(&trace.go);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_string_equal(trace.text, "--a+.");
    assert_int_equal(uv_loop_close(&loop), 0);
    sem_destroy(&trace.begun);
    sem_destroy(&trace.go);
}

// Two items that end only when both have begun, and a third behind them.
struct meeting {
    sem_t begun[2];
    _Atomic int done; // counted on the loop thread, read by the third item
    int at_third;     // how many were done when the third one ran
};

struct guest {
    struct work_item item;
    struct meeting *meeting;
    int number;
};

static void work_meet(struct work_item *item)
{
    struct guest *guest = (struct guest *)item;
    sem_post(&guest->meeting->begun[guest->number]);
    sem_wait(&guest->meeting->begun[1 - guest->number]);
}

static void work_third(struct work_item *item)
{
    struct guest *guest = (struct guest *)item;
    guest->meeting->at_third = guest->meeting->done;
}

static void done_meeting(struct work_item *item, bool worked)
{
    struct guest *guest = (struct guest *)item;
    assert_true(worked);
    guest->meeting->done++;
}

static void a_wide_queue_runs_so_many_at_a_time_and_no_more(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct work_queue *queue = work_queue_create(&loop, 2);
    struct meeting meeting = {.done = 0};
    sem_init(&meeting.begun[0], 0, 0);
    sem_init(&meeting.begun[1], 0, 0);
    struct guest guest[3];
    for (int i = 0; i < 3; i++) {
        guest[i] = (struct guest){
            {.work = i < 2 ? work_meet : work_third, .done = done_meeting}, &meeting, i};
        work_queue_post(queue, &guest[i].item);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(meeting.done, 3);
    assert_true(meeting.at_third > 0); // it had no place before one of the others was done
    struct trace trace = {.len = 0};
    work_queue_close(queue, on_closed, &trace);
    assert_string_equal(trace.text, ".");
    assert_int_equal(uv_loop_close(&loop), 0);
    sem_destroy(&meeting.begun[0]);
    sem_destroy(&meeting.begun[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_run_one_after_another),
        cmocka_unit_test(a_wide_queue_runs_so_many_at_a_time_and_no_more),
        cmocka_unit_test(closing_finishes_the_running_task_and_drops_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
