// The READY jobs of one class of devices that are expected to go next, so that what their runs need
// can be read while the devices measure something else. Who really goes next is decided when a
// device is free; a wrong guess costs only the time of the reading. Used by scheduler.c alone.
#ifndef DAEMON_JOBS_LOOKAHEAD_H
#define DAEMON_JOBS_LOOKAHEAD_H

#include "daemon/devices/device.h"
#include "daemon/state/job.h"

// Jobs that are looked for: so many for each device, because the answer of the cache may wait for
// several flushes of the ledger, each as long as a short measurement; and so many altogether.
#define LOOKAHEAD_EACH 4
#define LOOKAHEAD_MAX 32
#define LOOKAHEAD_KEPT (2 * LOOKAHEAD_MAX)

// Zeroed at first but for the class.
struct lookahead {
    struct device_class *device_class;
    struct job *job[LOOKAHEAD_KEPT]; // told to be next, longest ago first; in the class's queue
    size_t count;
    struct lookahead *next;
};

struct lookahead_events {
    void (*ahead)(void *owner, struct job *job);  // the job goes next
    void (*behind)(void *owner, struct job *job); // a job that was told to be ahead does not
    void *owner;
};

// Looks who goes next where that is worth it: when the very next job is not known, or fewer than
// three quarters of those that are looked for.
void lookahead_fill(struct lookahead *lookahead, const struct fair_terms *terms, double now_s,
                    const struct lookahead_events *events);
// The job has left its queue. No event follows. No effect for a job that is not ahead.
void lookahead_remove(struct lookahead *lookahead, const struct job *job);

#endif
