// Design note. Room is reserved before anything is written, by the one thread that also settles it,
// so any number of puts at the same time stay within the limits together. While a walk counts what
// there is, what is reserved may or may not be seen by it, so it is added to what the walk finds.
#include "daemon/store/blob_quota.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define PAGE 4096     // bytes
#define OWN_PARTS 8   // one part in so many is kept for what the daemon makes
#define MIB (1 << 20) // bytes

// Bytes of blobs.
struct amount {
    uint64_t used;     // with what is reserved
    uint64_t reserved; // and not settled
    uint64_t since;    // what was reserved when the count began, and what was since
};

struct quota_tenant {
    char *name;
    struct amount amount;
    UT_hash_handle hh;
};

struct blob_quota {
    uint64_t max;
    uint64_t tenant_max;
    struct amount all;
    bool counted;
    struct quota_tenant *tenants;
};

struct blob_quota *blob_quota_create(void)
{
    struct blob_quota *quota = xcalloc(1, sizeof(*quota));

    quota->max = quota->tenant_max = UINT64_MAX;
    quota->counted = true;
    return quota;
}

static void forget_tenant(struct blob_quota *quota, struct quota_tenant *tenant)
{
    HASH_DEL(quota->tenants, tenant);
    free(tenant->name);
    free(tenant);
}

void blob_quota_free(struct blob_quota *quota)
{
    if (quota) {
        while (quota->tenants) {
            forget_tenant(quota, quota->tenants);
        }
        free(quota);
    }
}

void blob_quota_limit(struct blob_quota *quota, uint64_t max, uint64_t tenant_max)
{
    quota->max = max;
    quota->tenant_max = tenant_max;
    quota->counted = false;
}

static struct quota_tenant *find_tenant(const struct blob_quota *quota, const char *name)
{
    struct quota_tenant *tenant;

    HASH_FIND_STR(quota->tenants, name, tenant);
    return tenant;
}

static struct quota_tenant *get_tenant(struct blob_quota *quota, const char *name)
{
    struct quota_tenant *tenant = find_tenant(quota, name);

    if (!tenant) {
        tenant = xcalloc(1, sizeof(*tenant));
        tenant->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, quota->tenants, tenant->name, strlen(tenant->name), tenant);
    }
    return tenant;
}

void blob_quota_begin_count(struct blob_quota *quota)
{
    quota->all.since = quota->all.reserved;
    for (struct quota_tenant *tenant = quota->tenants; tenant; tenant = tenant->hh.next) {
        tenant->amount.since = tenant->amount.reserved;
    }
}

void blob_quota_counted(struct blob_quota *quota, uint64_t bytes, const struct blob_owner *owners,
                        size_t count)
{
    struct quota_tenant *tenant;
    struct quota_tenant *next;

    quota->all.used = bytes + quota->all.since;
    quota->counted = true;
    for (tenant = quota->tenants; tenant; tenant = tenant->hh.next) {
        tenant->amount.used = tenant->amount.since;
    }
    for (size_t i = 0; i < count; i++) {
        get_tenant(quota, owners[i].tenant)->amount.used += owners[i].bytes;
    }
    HASH_ITER (hh, quota->tenants, tenant, next) {
        if (tenant->amount.used == 0) {
            forget_tenant(quota, tenant);
        }
    }
}

bool blob_quota_is_counted(const struct blob_quota *quota)
{
    return quota->counted;
}

uint64_t blob_quota_room(size_t len)
{
    return len > PAGE ? ((uint64_t)len + PAGE - 1) / PAGE * PAGE : PAGE;
}

static bool fits(uint64_t used, uint64_t room, uint64_t max)
{
    return used <= max && room <= max - used;
}

static void reserve(struct amount *amount, uint64_t room)
{
    amount->used += room;
    amount->reserved += room;
    amount->since += room;
}

int blob_quota_reserve(struct blob_quota *quota, const char *tenant, uint64_t room, bool *ret_own,
                       struct err *err)
{
    const struct quota_tenant *known = tenant ? find_tenant(quota, tenant) : NULL;
    uint64_t max = tenant ? quota->max - quota->max / OWN_PARTS : quota->max;
    uint64_t used = known ? known->amount.used : 0;

    *ret_own = tenant && !fits(used, room, quota->tenant_max);
    if (*ret_own) {
        return err_set(err, ERR_NO_SPACE,
                       "no room for %llu KiB: tenant %s has sent %llu MiB of the at most %llu MiB "
                       "that kcastd keeps for it (--blobs-share); finish jobs, wait until its old "
                       "sources go after an hour, or have the share raised",
                       (unsigned long long)(room / 1024), tenant, (unsigned long long)(used / MIB),
                       (unsigned long long)(quota->tenant_max / MIB));
    }
    if (!fits(quota->all.used, room, max)) {
        return err_set(err, ERR_NO_SPACE,
                       "no room for %llu KiB: sources and objects of all tenants take %llu MiB of "
                       "the at most %llu MiB that kcastd keeps of them (--blobs-max); wait until "
                       "old ones go after an hour, or have the limit raised",
                       (unsigned long long)(room / 1024),
                       (unsigned long long)(quota->all.used / MIB),
                       (unsigned long long)(max / MIB));
    }
    reserve(&quota->all, room);
    if (tenant) {
        reserve(&get_tenant(quota, tenant)->amount, room);
    }
    return 0;
}

static void settle(struct amount *amount, uint64_t room, bool written)
{
    amount->reserved -= room;
    if (!written) {
        amount->used -= room;
        amount->since -= room;
    }
}

void blob_quota_settle(struct blob_quota *quota, const char *tenant, uint64_t room, bool written)
{
    settle(&quota->all, room, written);
    if (tenant) {
        settle(&find_tenant(quota, tenant)->amount, room, written);
    }
}

uint64_t blob_quota_used(const struct blob_quota *quota)
{
    return quota->all.used;
}
