// Who sent a request, and the table of the role that each operation takes. Pure functions, which
// servers call through net/auth/identity.h and the commands of the client call directly. Knows no
// tokens and no connections.
#ifndef NET_AUTH_CALLER_H
#define NET_AUTH_CALLER_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>

#define TENANT_MAX 64        // bytes of a name
#define TENANT_LOCAL "local" // the tenant of every caller on tcp://, where no token is asked for

// Each role may also do what those before it may.
enum caller_role {
    CALLER_OBSERVE, // look
    CALLER_SUBMIT,  // have work done and stop it
    CALLER_ADMIN,   // everything, also with what belongs to other tenants
};

struct caller {
    const char *tenant; // borrowed
    enum caller_role role;
};

// Returns "observe", "submit" or "admin".
const char *caller_role_name(enum caller_role role);
// The reverse. ERR_INVALID names the three roles.
MUST_CHECK int caller_role_parse(enum caller_role *ret, const char *name, struct err *err);
// Checks that name can be a tenant's: 1 to TENANT_MAX characters of a-z A-Z 0-9 _ -, and the first
// one not a dash. ERR_INVALID says so.
MUST_CHECK int caller_check_tenant(const char *name, struct err *err);

// Returns the least role that may ask for this operation. An operation that is not in the table
// takes CALLER_ADMIN.
enum caller_role caller_role_for(uint64_t op);
// Returns whether the table has the operation.
bool caller_op_is_listed(uint64_t op);
// Returns whether this caller may see and stop what belongs to tenant.
bool caller_owns(const struct caller *caller, const char *tenant);

#endif
