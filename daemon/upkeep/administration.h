// What operators want of devices: DRAIN, QUARANTINE, PROBE. Carries it out, and keeps drains and
// quarantines in the ledger, so that a restart changes nothing.
#ifndef DAEMON_UPKEEP_ADMINISTRATION_H
#define DAEMON_UPKEEP_ADMINISTRATION_H

#include "daemon/state/parts.h"
#include "net/rpc/service.h"

#define ADMINISTRATION_PROBE_MS 60000 // longest probe

struct administration;

// Before the ledger's thread starts: gives the devices their orders again. ERR_CORRUPT as
// ledger_load. No more devices are added from now on; parts outlive it.
MUST_CHECK int administration_create(struct administration **ret, const struct daemon_parts *parts,
                                     struct err *err);
// Each answers the exchange, now or later. Naming a device that is not there is ERR_NOT_FOUND, and
// then no device is touched.
void administration_drain(struct administration *administration, struct exchange *exchange,
                          const struct drain *drain);
void administration_quarantine(struct administration *administration, struct exchange *exchange,
                               const struct quarantine *quarantine);
// A device that runs something is tried when that has ended.
void administration_probe(struct administration *administration, struct exchange *exchange,
                          const struct probe_request *request);
// Every device takes no more jobs, until the daemon ends; the ledger keeps nothing of it.
void administration_vacate(struct administration *administration);
// Once a second: probes that can begin, or that nobody can wait for any longer.
void administration_tick(struct administration *administration);
// No more probes; those under way end. Exchanges that still wait are answered.
void administration_stop(struct administration *administration);
size_t administration_pending(
    const struct administration *administration); // exchanges that wait for the ledger
void administration_free(
    struct administration *administration); // none may be pending; NULL is fine

#endif
