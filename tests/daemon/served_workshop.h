// A workshop with a service and budgets, so that everything is there which the daemon tells of
// itself.
#ifndef TESTS_DAEMON_SERVED_WORKSHOP_H
#define TESTS_DAEMON_SERVED_WORKSHOP_H

#include "daemon/jobs/budgets.h"
#include "net/rpc/service.h"
#include "tests/support/workshop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static inline void served_on_change(void *owner)
{
    (void)owner;
}

static inline void served_on_request(void *owner, struct exchange *exchange,
                                     const struct request *request)
{
    (void)owner;
    (void)exchange;
    (void)request;
    fail_msg("nobody calls here");
}

static inline struct workshop *served_open(size_t cores)
{
    const struct service_config config = {
        .url = "tcp://127.0.0.1:0",
        .exchanges_max = 4,
        .parked_max = 2,
        .message_max = 1 << 20,
        .on_request = served_on_request,
    };
    struct workshop *w = xcalloc(1, sizeof(*w));

    workshop_open(w, cores);
    w->parts.state_dir = w->dir;
    w->parts.budgets = budgets_create(w->parts.accounts, w->parts.ledger, served_on_change, w);
    assert_int_equal(service_create(&w->parts.service, &w->loop, &config, NULL), 0);
    return w;
}

static inline void served_close(struct workshop *w)
{
    service_close(w->parts.service);
    budgets_free(w->parts.budgets);
    workshop_close(w);
    free(w);
}

#endif
