// A daemon's status as JSON: what `kcast status --json` prints and the daemon's /status.json
// serves, one function so that they cannot differ.
#ifndef PROTO_STATUS_JSON_H
#define PROTO_STATUS_JSON_H

#include "proto/messages.h"

struct json_t;

// A new reference to {"schema", "pool", every field of the status, "jobs", "worker"}. pool is the
// url of the daemon. Facts and readings of devices are objects of name and value, "jobs" is one of
// states and counts, and "worker" is null until the caller replaces it.
struct json_t *status_json(const struct status *status, const char *pool);

// The number that every JSON object of kernelcast begins with. It grows when a key changes its
// meaning or its type; new keys do not count.
#define JSON_SCHEMA 1

#endif
