// Decides which job goes next, and when. Owns the queue of jobs that wait to be prepared, takes
// jobs from the queue of every class of devices, and lets compilations and measurements take turns
// where they exclude each other. lifecycle.c puts jobs in and is called back when one may begin.
// What the job does then is not known here.
#ifndef DAEMON_JOBS_SCHEDULER_H
#define DAEMON_JOBS_SCHEDULER_H

#include "daemon/devices/device.h"
#include "daemon/state/job.h"
#include "daemon/state/parts.h"

struct scheduler;

// Callbacks of the scheduler. With `prepare` and `measure` the job is in no queue. The callee
// copies the grant and finishes it exactly once: after `prepare` by scheduler_prepared, after
// `measure` by queue_finish on the queue of the device's class, followed by scheduler_measured;
// both may come within the call.
struct scheduler_events {
    // A READY job, which stays in its queue, is expected to be measured next: what that takes may
    // be read. scheduler_was_read follows, once, when that has come back. Later comes `measure`, or
    // `behind` when others go first after all; a job that is taken out of its queue gets neither.
    void (*ahead)(void *owner, struct job *job);
    void (*behind)(void *owner, struct job *job);
    void (*prepare)(void *owner, struct job *job, const struct queue_grant *grant);
    void (*measure)(void *owner, struct job *job, struct device *device,
                    const struct queue_grant *grant);
    void *owner;
};

// `parts` outlives it. Uses limits, devices, accounts, compiler, executors, counters, clock and
// loop.
struct scheduler *scheduler_create(const struct daemon_parts *parts);
// Sets the callbacks. To be called before the first job is added.
void scheduler_serve(struct scheduler *scheduler, const struct scheduler_events *events);
// Begins nothing more.
void scheduler_stop(struct scheduler *scheduler);
// Returns whether preparations, runs or readings ahead are in progress.
bool scheduler_busy(const struct scheduler *scheduler);
// Frees it when the loop has closed its timer, so the loop must run once more. NULL is fine.
void scheduler_free(struct scheduler *scheduler);

// Puts the job into the queue that its state says: a QUEUED job waits to be prepared, a READY job
// waits for a device of its class. The weights of its search and tenant are those of this moment.
// An interactive job that is expected to take long waits in the class `normal`.
void scheduler_add(struct scheduler *scheduler, struct job *job);
// Takes the job out of its queue. No-op when it is in none.
void scheduler_remove(struct scheduler *scheduler, struct job *job);
// A preparation has ended after so many seconds of compiling, or was cancelled (0 seconds).
void scheduler_prepared(struct scheduler *scheduler, struct queue_grant *grant, double seconds);
// A run has ended that held its device for held_s seconds.
void scheduler_measured(struct scheduler *scheduler, double held_s);
// What `ahead` has had read has come back.
void scheduler_was_read(struct scheduler *scheduler);
// Visits the jobs of the class that are expected to be measured next. The visitor must not begin or
// remove any.
void scheduler_visit_ahead(const struct scheduler *scheduler,
                           const struct device_class *device_class,
                           void (*visit)(void *owner, struct job *job), void *owner);
// Tells that something may be able to begin that was not before. The scheduler looks in the next
// turn of the loop.
void scheduler_wake(struct scheduler *scheduler);
// To be called once a second. Updates the devices' causes that end with time, and looks whether a
// budget per hour lets jobs begin again.
void scheduler_tick(struct scheduler *scheduler);

// Callbacks for the compiler (struct compiler_events), with the scheduler as owner: whether a
// compiler process may be started now, and that one has ended after so many seconds.
bool scheduler_may_compile(void *scheduler);
void scheduler_compiled(void *scheduler, double seconds);

// Returns the number of jobs that wait to be prepared.
size_t scheduler_unprepared(const struct scheduler *scheduler);

#endif
