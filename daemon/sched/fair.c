// Design note. There is a heap of tenants by virtual time. Each tenant has a heap of its searches
// by virtual time, and each search has a heap of its entries by priority and age. Tenants and
// searches follow the same rules; f is one of them, v_f its virtual time:
//
//   f becomes active   v_f = max(v_f, V)
//   take               choose f with the least v_f; V = max(V, v_f); v_f += e / weight_f
//   refresh            if it was held longer than was charged: v_f += difference / weight_f
//   finish             v_f += (actual - charged) / weight_f; e = 0.9 e + 0.1 actual
//
// V is the virtual time of the level: of the tenant for its searches, of the whole for tenants. e
// is the estimate of the search; that of a new one is the mean of all entries of late, because what
// it is charged too much moves V, and whoever becomes active then is behind for as long as it takes
// the others to be where they were thought to be.
//
// Invariants: a search is in its tenant's heap exactly when it has entries; a tenant is in the heap
// exactly when one of its searches is; `active_weight` is the sum of the weights of those that have
// entries or unfinished grants. An inactive search is forgotten once V has caught up with it,
// because then nothing changes by it. When nothing is active, everything but the mean cost is
// forgotten.
#include "common/mem.h"
#include "daemon/sched/fair_state.h"
#include <math.h>
#include <stdlib.h>

#define ESTIMATE_KEEP 0.9 // weight of the old mean when the cost of an entry is added

// --- add and remove

// Brings the heaps up to date with the virtual times and entries of a search and its tenant.
static void place(struct fair *fair, struct fair_search *search)
{
    struct fair_tenant *tenant = search->tenant;

    if (search->index != HEAP_NOT_IN && search->entries.count > 0) {
        heap_rekey(&tenant->waiting, search->index);
    } else if (search->index != HEAP_NOT_IN) {
        (void)heap_remove(&tenant->waiting, search->index);
    } else if (search->entries.count > 0) {
        heap_insert(&tenant->waiting, search);
    }
    if (tenant->index != HEAP_NOT_IN && tenant->waiting.count > 0) {
        heap_rekey(&fair->waiting, tenant->index);
    } else if (tenant->index != HEAP_NOT_IN) {
        (void)heap_remove(&fair->waiting, tenant->index);
    } else if (tenant->waiting.count > 0) {
        heap_insert(&fair->waiting, tenant);
    }
}

void fair_add(struct fair *fair, struct fair_entry *entry, const struct fair_who *who)
{
    struct fair_search *search = fair_get_search(fair, who);

    if (!fair_is_active(search)) {
        fair_activate(fair, search);
    }
    entry->search = search;
    heap_insert(&search->entries, entry);
    fair->count++;
    place(fair, search);
}

static void take_out(struct fair *fair, struct fair_entry *entry)
{
    (void)heap_remove(&entry->search->entries, entry->index);
    entry->search = NULL;
    fair->count--;
}

void fair_remove(struct fair *fair, struct fair_entry *entry)
{
    struct fair_search *search = entry->search;

    if (!search) {
        return;
    }
    take_out(fair, entry);
    place(fair, search);
    if (!fair_is_active(search)) {
        fair_deactivate(fair, search);
    }
}

// --- who goes next

static bool is_within_bound(const struct fair *fair, const struct fair_terms *terms,
                            const struct fair_search *search)
{
    // 1e-9 less, so that rounding does not make a third of three devices two.
    double bound = ceil(fair_share_of(fair, search) * terms->devices - 1e-9) + 1;

    return terms->devices == 0 || search->held == 0 || search->held + 1 <= bound;
}

static bool is_avoided(const struct fair_entry *entry, const struct fair_terms *terms)
{
    return (entry->avoid != 0 && entry->avoid == terms->sole && terms->devices > 1) ||
           (entry->fresh && terms->fresh_waits);
}

static bool may_begin(const struct fair_entry *entry, const struct fair_terms *terms)
{
    return !is_avoided(entry, terms) && !(terms->first && entry->search->held > 0) &&
           (!terms->may || terms->may(terms->owner, entry->search->id));
}

// Returns the search's first entry that does not avoid the only idle device, or its first entry
// when all avoid it. Entries before it are taken out of the heap and put back. They are few: what
// is measured again, and what lost a device, which is taken out of service when it loses several.
static struct fair_entry *next_of(struct fair_search *search, const struct fair_terms *terms)
{
    struct fair_entry **aside = NULL;
    struct fair_entry *entry;
    size_t count = 0;

    while ((entry = heap_top(&search->entries)) && is_avoided(entry, terms)) {
        aside = xrealloc(aside, count + 1, sizeof(struct fair_entry *));
        aside[count++] = heap_remove(&search->entries, 0);
    }
    for (size_t i = 0; i < count; i++) {
        heap_insert(&search->entries, aside[i]);
    }
    free(aside);
    return entry ? entry : heap_top(&search->entries);
}

// Returns the tenant's entry that goes next, or NULL when none may begin. `bound` restricts the
// choice to searches within their bound. Searches that may not begin are taken out of the heap and
// put back. They are few, because a search above its bound holds at least two devices;
// with terms->first they are all that hold something.
static struct fair_entry *first_of(struct fair *fair, struct fair_tenant *tenant,
                                   const struct fair_terms *terms, bool bound)
{
    struct fair_search **aside = NULL;
    struct fair_entry *found = NULL;
    struct fair_search *search;
    size_t count = 0;

    while (!found && (search = heap_top(&tenant->waiting))) {
        struct fair_entry *entry = next_of(search, terms);

        if (may_begin(entry, terms) && (!bound || is_within_bound(fair, terms, search))) {
            found = entry;
            break;
        }
        aside = xrealloc(aside, count + 1, sizeof(struct fair_search *));
        aside[count++] = heap_remove(&tenant->waiting, 0);
    }
    while (count > 0) {
        heap_insert(&tenant->waiting, aside[--count]);
    }
    free(aside);
    return found;
}

// Returns the entry of any tenant that goes next, or NULL.
static struct fair_entry *first_under(struct fair *fair, const struct fair_terms *terms, bool bound)
{
    struct fair_tenant **aside = NULL;
    struct fair_entry *found = NULL;
    struct fair_tenant *tenant;
    size_t count = 0;

    while (!found && (tenant = heap_top(&fair->waiting))) {
        found = first_of(fair, tenant, terms, bound);
        if (!found) {
            aside = xrealloc(aside, count + 1, sizeof(struct fair_tenant *));
            aside[count++] = heap_remove(&fair->waiting, 0);
        }
    }
    while (count > 0) {
        heap_insert(&fair->waiting, aside[--count]);
    }
    free(aside);
    return found;
}

struct fair_entry *fair_first(struct fair *fair, const struct fair_terms *terms)
{
    struct fair_entry *found = first_under(fair, terms, true);

    return found || terms->devices == 0 ? found : first_under(fair, terms, false);
}

// --- charging

static void charge(struct fair_grant *grant, double seconds)
{
    struct fair_search *search = grant->search;

    grant->charged += seconds;
    search->virtual_time += seconds / search->weight;
    search->tenant->virtual_time += seconds / search->tenant->weight;
}

static void learn(double *estimate, double seconds)
{
    *estimate = ESTIMATE_KEEP * *estimate + (1 - ESTIMATE_KEEP) * seconds;
}

void fair_take(struct fair *fair, struct fair_entry *entry, struct fair_grant *ret)
{
    struct fair_search *search = entry->search;
    struct fair_tenant *tenant = search->tenant;

    fair->virtual_time = fmax(fair->virtual_time, tenant->virtual_time);
    tenant->searches_time = fmax(tenant->searches_time, search->virtual_time);
    *ret = (struct fair_grant){.search = search};
    search->taken++;
    search->held++;
    fair->taken++;
    charge(ret, search->estimate);
    take_out(fair, entry);
    place(fair, search);
}

// What fair_preview has to restore after it has taken an entry.
struct taken {
    struct fair_entry *entry;
    struct fair_search *search;
    double virtual_time, tenant_time, searches_time, fair_time;
};

static struct taken take_for_now(struct fair *fair, struct fair_entry *entry)
{
    struct fair_search *search = entry->search;
    struct taken taken = {
        .entry = entry,
        .search = search,
        .virtual_time = search->virtual_time,
        .tenant_time = search->tenant->virtual_time,
        .searches_time = search->tenant->searches_time,
        .fair_time = fair->virtual_time,
    };
    struct fair_grant grant;

    fair_take(fair, entry, &grant);
    return taken;
}

static void put_back(struct fair *fair, const struct taken *taken)
{
    struct fair_search *search = taken->search;

    search->virtual_time = taken->virtual_time;
    search->tenant->virtual_time = taken->tenant_time;
    search->tenant->searches_time = taken->searches_time;
    fair->virtual_time = taken->fair_time;
    search->taken--;
    search->held--;
    fair->taken--;
    taken->entry->search = search;
    heap_insert(&search->entries, taken->entry);
    fair->count++;
    place(fair, search);
}

size_t fair_preview(struct fair *fair, const struct fair_terms *terms, struct fair_entry **ret,
                    size_t max)
{
    struct taken *taken = xcalloc(max + 1, sizeof(*taken));
    struct fair_entry *entry;
    size_t count = 0;

    while (count < max && (entry = fair_first(fair, terms))) {
        taken[count] = take_for_now(fair, entry);
        ret[count++] = entry;
    }
    for (size_t i = count; i > 0; i--) {
        put_back(fair, &taken[i - 1]);
    }
    free(taken);
    return count;
}

void fair_refresh(struct fair *fair, struct fair_grant *grant, double seconds)
{
    double more = seconds - grant->charged;

    if (grant->search && more > 0) {
        charge(grant, more);
        place(fair, grant->search);
    }
}

void fair_finish(struct fair *fair, struct fair_grant *grant, double seconds, bool free)
{
    struct fair_search *search = grant->search;

    if (!search) {
        return;
    }
    charge(grant, (free ? 0 : seconds) - grant->charged);
    if (!free) {
        learn(&search->estimate, seconds);
        learn(&fair->estimate, seconds);
    }
    search->taken--;
    search->held--;
    fair->taken--;
    *grant = (struct fair_grant){0};
    place(fair, search);
    if (!fair_is_active(search)) {
        fair_deactivate(fair, search);
    }
}
