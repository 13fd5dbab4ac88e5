// A search from opening its run file to its end: connections, the event that begins a session, the
// loop, time limits, interruption. Called by the commands that search; it leaves all decisions
// about candidates to client/search/pipeline.h.
#ifndef CLIENT_SEARCH_SEARCH_H
#define CLIENT_SEARCH_SEARCH_H

#include "client/run/run.h"
#include "client/run/run_state.h"
#include "client/session.h"
#include "common/err.h"

// Whoever wants to see the events of the run as they are recorded. A failure ends the search.
struct search_observer {
    int (*visit)(void *owner, struct run_event *event, struct err *err);
    void *owner;
    uint64_t after; // number of the last event that it does not want; 0: it wants all
};

// Goes on with a run until it is finished: appends RUN_SESSION, what follows from it, and
// RUN_FINISHED. run_state is the state of the run and is kept up to date. began_at is when the
// caller began this session (job_times_now); what passes until RUN_SESSION is start-up. ERR_STOPPED
// when the session is interrupted. After this or any other failure the run can be driven again and
// goes on where it was. observer sees the run's events after its `after`; NULL: nobody does.
MUST_CHECK int search_drive(struct session *session, struct run *run, struct run_state *run_state,
                            double began_at, const struct search_observer *observer,
                            struct err *err);

#endif
