// Who sent a request, and what such a one may ask for.
#ifndef NET_AUTH_CALLER_H
#define NET_AUTH_CALLER_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>

#define TENANT_MAX 64
#define TENANT_LOCAL "local" // everybody's on loopback, where nobody is asked who he is

// Each may do what those before it may.
enum caller_role {
    CALLER_OBSERVE, // look
    CALLER_SUBMIT,  // have work done, and stop it again
    CALLER_ADMIN,   // everything, for everybody
};

struct caller {
    const char *tenant; // whose jobs these are
    enum caller_role role;
};

// "observe", "submit", "admin".
const char *caller_role_name(enum caller_role role);
// ERR_INVALID names the three.
MUST_CHECK int caller_role_parse(enum caller_role *ret, const char *name, struct err *err);
// 1 to TENANT_MAX of a-z A-Z 0-9 _ -, and no dash in front. ERR_INVALID says so.
MUST_CHECK int caller_check_tenant(const char *name, struct err *err);

// The least role that may ask for this operation; CALLER_ADMIN for those that are not in the table.
enum caller_role caller_role_for(uint64_t op);
// Whether the role needed for it was thought about: it is in the table.
bool caller_knows(uint64_t op);
// Whether this caller may see and stop what belongs to tenant.
bool caller_owns(const struct caller *caller, const char *tenant);

#endif
