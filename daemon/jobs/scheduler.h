// Who goes next, and when. Owns the queue of those that wait to be prepared (the intake), serves
// the queue of every class of devices, and decides whose turn it is where compilations and
// measurements exclude each other. Tells its owner which job may begin; knows nothing of what the
// job does then.
#ifndef DAEMON_JOBS_SCHEDULER_H
#define DAEMON_JOBS_SCHEDULER_H

#include "daemon/devices/device.h"
#include "daemon/state/job.h"
#include "daemon/state/parts.h"

struct scheduler;

// Whom it tells. The job is in no queue then; the ticket is copied, and settled exactly once:
// by scheduler_prepared after `prepare`, by queue_settle on the device's queue and
// scheduler_measured after `measure`.
struct scheduler_events {
    void (*prepare)(void *owner, struct job *job, const struct queue_ticket *ticket);
    void (*measure)(void *owner, struct job *job, struct device *device,
                    const struct queue_ticket *ticket);
    void *owner;
};

// parts outlive it; limits, devices, accounts, compiler, clock and loop are used.
struct scheduler *scheduler_create(const struct daemon_parts *parts);
// Who is told; before the first job.
void scheduler_serve(struct scheduler *scheduler, const struct scheduler_events *events);
// Begins nothing more.
void scheduler_stop(struct scheduler *scheduler);
bool scheduler_busy(const struct scheduler *scheduler); // preparations or runs are under way
void scheduler_free(struct scheduler *scheduler);       // the loop must run once more; NULL is fine

// Into the queue that its state says: QUEUED waits to be prepared, READY for a device of its class,
// with its search's weights as they are now. An interactive job that is expected to be long waits
// as a normal one.
void scheduler_add(struct scheduler *scheduler, struct job *job);
// Out of its queue; no-op when it is in none.
void scheduler_remove(struct scheduler *scheduler, struct job *job);
// A preparation has ended after so many seconds of compiling, or was given up (0).
void scheduler_prepared(struct scheduler *scheduler, struct queue_ticket *ticket, double seconds);
// A run has ended that held its device for so long.
void scheduler_measured(struct scheduler *scheduler, double held_s);
// Something may begin that could not before: looks again in the next turn of the loop.
void scheduler_kick(struct scheduler *scheduler);
// Once a second: devices whose rest is over, budgets per hour that have some again.
void scheduler_tick(struct scheduler *scheduler);

// What the compiler asks and tells (struct compiler_events), with the scheduler as owner: whether a
// child may be started now; one has ended after so many seconds.
bool scheduler_may_compile(void *scheduler);
void scheduler_compiled(void *scheduler, double seconds);

size_t scheduler_intake(const struct scheduler *scheduler); // jobs that wait to be prepared

#endif
