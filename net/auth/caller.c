#include "net/auth/caller.h"

#include "common/mem.h"
#include <string.h>

static const char *const role_name[] = {
    [CALLER_OBSERVE] = "observe",
    [CALLER_SUBMIT] = "submit",
    [CALLER_ADMIN] = "admin",
};

// The role that an operation takes, plus one: 0 means that the table does not have the operation.
#define NEEDS(role) ((role) + 1)
static const unsigned char needed[] = {
    [OP_HELLO] = NEEDS(CALLER_OBSERVE),         [OP_BLOB_PUT] = NEEDS(CALLER_SUBMIT),
    [OP_BLOB_HAVE] = NEEDS(CALLER_SUBMIT),      [OP_SUBMIT] = NEEDS(CALLER_SUBMIT),
    [OP_WAIT] = NEEDS(CALLER_OBSERVE),          [OP_STATUS] = NEEDS(CALLER_OBSERVE),
    [OP_CANCEL] = NEEDS(CALLER_SUBMIT),         [OP_ACK] = NEEDS(CALLER_SUBMIT),
    [OP_DRAIN] = NEEDS(CALLER_ADMIN),           [OP_FORECAST] = NEEDS(CALLER_SUBMIT),
    [OP_OBSERVE] = NEEDS(CALLER_SUBMIT),        [OP_PROPOSE] = NEEDS(CALLER_SUBMIT),
    [OP_WORKER_STATUS] = NEEDS(CALLER_OBSERVE), [OP_BUDGET] = NEEDS(CALLER_OBSERVE),
    [OP_RECALL] = NEEDS(CALLER_SUBMIT),         [OP_RANK] = NEEDS(CALLER_SUBMIT),
    [OP_QUARANTINE] = NEEDS(CALLER_ADMIN),      [OP_PROBE] = NEEDS(CALLER_ADMIN),
};

const char *caller_role_name(enum caller_role role)
{
    return role_name[role];
}

int caller_role_parse(enum caller_role *ret, const char *name, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(role_name); i++) {
        if (strcmp(role_name[i], name) == 0) {
            *ret = (enum caller_role)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "\"%.40s\" is no role; observe, submit and admin are", name);
}

int caller_check_tenant(const char *name, struct err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-";
    size_t len = strlen(name);

    if (len == 0 || len > TENANT_MAX || name[0] == '-' || strspn(name, letters) != len) {
        return err_set(err, ERR_INVALID,
                       "\"%.80s\" cannot be a name; take at most %d letters, digits, _ and -", name,
                       TENANT_MAX);
    }
    return 0;
}

bool caller_op_is_listed(uint64_t op)
{
    return op < ARRAY_LEN(needed) && needed[op] != 0;
}

enum caller_role caller_role_for(uint64_t op)
{
    return caller_op_is_listed(op) ? (enum caller_role)(needed[op] - 1) : CALLER_ADMIN;
}

bool caller_owns(const struct caller *caller, const char *tenant)
{
    return caller->role == CALLER_ADMIN || strcmp(caller->tenant, tenant) == 0;
}
