// Device administration: the operations DRAIN, QUARANTINE and PROBE. Carries them out, answers
// them, and keeps drains and quarantines in the ledger, so that they survive a restart. Called by
// dispatch.c and daemon.c. Knows nothing of jobs.
#ifndef DAEMON_UPKEEP_ADMINISTRATION_H
#define DAEMON_UPKEEP_ADMINISTRATION_H

#include "daemon/state/parts.h"
#include "net/rpc/service.h"

#define ADMINISTRATION_PROBE_MS 60000 // time limit of a probe

struct administration;

// Applies the drains and quarantines of the ledger to the devices. To be called before
// ledger_start, when all devices have been added. `parts` outlives it. Errors are those of
// ledger_load_orders.
MUST_CHECK int administration_create(struct administration **ret, const struct daemon_parts *parts,
                                     struct err *err);

// Each of the next three answers the exchange, at once or later. When a device that is named does
// not exist, the answer is ERR_NOT_FOUND and no device is touched.

// Drains devices, or ends their drain. Answers when the ledger has it.
void administration_drain(struct administration *administration, struct exchange *exchange,
                          const struct drain *drain);
// Quarantines devices. Answers when the ledger has it.
void administration_quarantine(struct administration *administration, struct exchange *exchange,
                               const struct quarantine *quarantine);
// Probes a device. A device that is busy is probed when its job has ended.
void administration_probe(struct administration *administration, struct exchange *exchange,
                          const struct probe_request *request);

// Drains every device until the daemon ends. The ledger is not told.
void administration_drain_all(struct administration *administration);
// To be called once a second. Begins probes whose device has become idle, and answers those whose
// caller cannot wait any longer.
void administration_tick(struct administration *administration);
// Stops probes, and answers the exchanges that wait for one. NULL is fine.
void administration_stop(struct administration *administration);
// Returns the number of exchanges that wait for the ledger. 0 for NULL.
size_t administration_pending(const struct administration *administration);
// No exchange may be pending. NULL is fine.
void administration_free(struct administration *administration);

#endif
