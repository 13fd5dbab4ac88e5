// What operators want of devices: DRAIN, QUARANTINE, PROBE. Carries it out, and keeps drains and
// quarantines in the ledger, so that a restart changes nothing.
#ifndef DAEMON_ORDERS_H
#define DAEMON_ORDERS_H

#include "daemon/device.h"
#include "daemon/executor.h"
#include "daemon/ledger.h"
#include "net/service.h"

#define ORDERS_PROBE_MS 60000 // longest probe

struct orders;

struct orders_config {
    struct devices *devices; // no more are added from now on
    struct ledger *ledger;
    struct executor_pool *executors;
    uint64_t grace_ms;
    bool sandbox_off;
    // A device may take jobs that could not before.
    void (*on_change)(void *owner);
    void *owner;
};

// Before the ledger's thread starts: gives the devices their orders again. ERR_CORRUPT as
// ledger_load.
MUST_CHECK int orders_create(struct orders **ret, const struct orders_config *config,
                             struct err *err);
// Each answers the exchange, now or later. Naming a device that is not there is ERR_NOT_FOUND, and
// then no device is touched.
void orders_drain(struct orders *orders, struct exchange *exchange, const struct drain *drain);
void orders_quarantine(struct orders *orders, struct exchange *exchange,
                       const struct quarantine *quarantine);
// A device that runs something is tried when that has ended.
void orders_probe(struct orders *orders, struct exchange *exchange,
                  const struct probe_request *request);
// Every device takes no more jobs, until the daemon ends; the ledger keeps nothing of it.
void orders_vacate(struct orders *orders);
// Once a second: probes that can begin, or that nobody can wait for any longer.
void orders_tick(struct orders *orders);
// No more probes; those under way end. Exchanges that still wait are answered.
void orders_stop(struct orders *orders);
size_t orders_pending(const struct orders *orders); // exchanges that wait for the ledger
void orders_free(struct orders *orders);            // none may be pending; NULL is fine

#endif
