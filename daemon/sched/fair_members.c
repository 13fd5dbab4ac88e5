// The searches and tenants of a struct fair: they are found, made, activated, forgotten and shown
// here. The design note is in fair.c.
#include "common/mem.h"
#include "daemon/sched/fair_state.h"
#include <math.h>
#include <stdlib.h>

#define FIRST_ESTIMATE_S 0.5 // estimate of a search while no entry has been finished

// --- order

static bool entry_less(const void *a, const void *b)
{
    const struct fair_entry *x = a;
    const struct fair_entry *y = b;

    return x->priority != y->priority ? x->priority < y->priority : x->order < y->order;
}

static void entry_set_index(void *item, size_t index)
{
    ((struct fair_entry *)item)->index = index;
}

// Between equal virtual times the older entry decides. A search without entries goes last; it is
// compared while its last entry is being taken out.
static bool search_less(const void *a, const void *b)
{
    const struct fair_search *x = a;
    const struct fair_search *y = b;
    const struct fair_entry *x_top = heap_top(&x->entries);
    const struct fair_entry *y_top = heap_top(&y->entries);

    if (x->virtual_time < y->virtual_time || x->virtual_time > y->virtual_time) {
        return x->virtual_time < y->virtual_time;
    }
    return x_top && y_top ? x_top->order < y_top->order : !!x_top;
}

static void search_set_index(void *item, size_t index)
{
    ((struct fair_search *)item)->index = index;
}

static bool tenant_less(const void *a, const void *b)
{
    const struct fair_tenant *x = a;
    const struct fair_tenant *y = b;

    if (x->virtual_time < y->virtual_time || x->virtual_time > y->virtual_time) {
        return x->virtual_time < y->virtual_time;
    }
    return x->id < y->id;
}

static void tenant_set_index(void *item, size_t index)
{
    ((struct fair_tenant *)item)->index = index;
}

// --- members

struct fair *fair_create(void)
{
    struct fair *fair = xcalloc(1, sizeof(*fair));

    fair->estimate = FIRST_ESTIMATE_S;
    heap_init(&fair->waiting, tenant_less, tenant_set_index);
    return fair;
}

static void free_search(struct fair *fair, struct fair_search *search)
{
    search->tenant->members--;
    HASH_DEL(fair->searches, search);
    heap_release(&search->entries);
    free(search);
}

static void free_tenant(struct fair *fair, struct fair_tenant *tenant)
{
    HASH_DEL(fair->tenants, tenant);
    heap_release(&tenant->waiting);
    free(tenant);
}

static void free_members(struct fair *fair)
{
    struct fair_search *search;
    struct fair_search *next_search;
    struct fair_tenant *tenant;
    struct fair_tenant *next_tenant;

    HASH_ITER (hh, fair->searches, search, next_search) {
        free_search(fair, search);
    }
    HASH_ITER (hh, fair->tenants, tenant, next_tenant) {
        free_tenant(fair, tenant);
    }
}

void fair_free(struct fair *fair)
{
    if (fair) {
        free_members(fair);
        heap_release(&fair->waiting);
        free(fair);
    }
}

bool fair_is_active(const struct fair_search *search)
{
    return search->entries.count > 0 || search->taken > 0;
}

static struct fair_tenant *get_tenant(struct fair *fair, uint64_t id)
{
    struct fair_tenant *tenant;

    HASH_FIND(hh, fair->tenants, &id, sizeof(id), tenant);
    if (!tenant) {
        tenant = xcalloc(1, sizeof(*tenant));
        tenant->id = id;
        tenant->weight = 1;
        tenant->virtual_time = fair->virtual_time;
        tenant->index = HEAP_NOT_IN;
        heap_init(&tenant->waiting, search_less, search_set_index);
        HASH_ADD(hh, fair->tenants, id, sizeof(tenant->id), tenant);
    }
    return tenant;
}

static struct fair_search *find_or_make(struct fair *fair, const struct fair_who *who)
{
    struct fair_search *search;

    HASH_FIND(hh, fair->searches, &who->search, sizeof(who->search), search);
    if (!search) {
        search = xcalloc(1, sizeof(*search));
        search->id = who->search;
        search->tenant = get_tenant(fair, who->tenant);
        search->tenant->members++;
        search->weight = 1;
        search->virtual_time = search->tenant->searches_time;
        search->estimate = fair->estimate;
        search->index = HEAP_NOT_IN;
        heap_init(&search->entries, entry_less, entry_set_index);
        HASH_ADD(hh, fair->searches, id, sizeof(search->id), search);
    }
    return search;
}

static double bounded(double weight)
{
    return weight >= FAIR_WEIGHT_MIN ? fmin(weight, FAIR_WEIGHT_MAX) : FAIR_WEIGHT_MIN;
}

static void set_weights(struct fair *fair, struct fair_search *search, const struct fair_who *who)
{
    struct fair_tenant *tenant = search->tenant;
    double weight = bounded(who->weight);
    double tenant_weight = bounded(who->tenant_weight);

    if (fair_is_active(search)) {
        tenant->active_weight += weight - search->weight;
    }
    if (tenant->active > 0) {
        fair->active_weight += tenant_weight - tenant->weight;
    }
    search->weight = weight;
    tenant->weight = tenant_weight;
}

struct fair_search *fair_get_search(struct fair *fair, const struct fair_who *who)
{
    struct fair_search *search = find_or_make(fair, who);

    set_weights(fair, search, who);
    return search;
}

void fair_activate(struct fair *fair, struct fair_search *search)
{
    struct fair_tenant *tenant = search->tenant;

    search->virtual_time = fmax(search->virtual_time, tenant->searches_time);
    tenant->active_weight += search->weight;
    if (tenant->active++ == 0) {
        tenant->virtual_time = fmax(tenant->virtual_time, fair->virtual_time);
        fair->active_weight += tenant->weight;
        fair->active++;
    }
}

void fair_deactivate(struct fair *fair, struct fair_search *search)
{
    struct fair_tenant *tenant = search->tenant;

    // Set to zero with the last one, so that no rounding error stays.
    tenant->active_weight = --tenant->active > 0 ? tenant->active_weight - search->weight : 0;
    if (tenant->active == 0) {
        fair->active_weight = --fair->active > 0 ? fair->active_weight - tenant->weight : 0;
    }
    if (fair->active == 0) {
        free_members(fair);
        fair->virtual_time = 0;
    } else if (search->virtual_time <= tenant->searches_time) {
        free_search(fair, search);
        if (tenant->members == 0 && tenant->virtual_time <= fair->virtual_time) {
            free_tenant(fair, tenant);
        }
    }
}

void fair_sweep(struct fair *fair)
{
    struct fair_search *search;
    struct fair_search *next_search;
    struct fair_tenant *tenant;
    struct fair_tenant *next_tenant;

    HASH_ITER (hh, fair->searches, search, next_search) {
        tenant = search->tenant;
        if (!fair_is_active(search) &&
            (search->virtual_time <= tenant->searches_time ||
             (tenant->active == 0 && tenant->virtual_time <= fair->virtual_time))) {
            free_search(fair, search);
        }
    }
    HASH_ITER (hh, fair->tenants, tenant, next_tenant) {
        if (tenant->members == 0 && tenant->virtual_time <= fair->virtual_time) {
            free_tenant(fair, tenant);
        }
    }
}

double fair_share_of(const struct fair *fair, const struct fair_search *search)
{
    const struct fair_tenant *tenant = search->tenant;

    return tenant->active_weight > 0 && fair->active_weight > 0
               ? search->weight / tenant->active_weight * (tenant->weight / fair->active_weight)
               : 0;
}

// --- what others see

size_t fair_count(const struct fair *fair)
{
    return fair->count;
}

size_t fair_held(const struct fair *fair)
{
    return fair->taken;
}

size_t fair_members(const struct fair *fair)
{
    return HASH_COUNT(fair->searches);
}

void fair_visit(const struct fair *fair, void (*visit)(void *owner, const struct fair_view *view),
                void *owner)
{
    for (const struct fair_search *s = fair->searches; s; s = s->hh.next) {
        struct fair_view view = {
            .tenant = s->tenant->id,
            .search = s->id,
            .share = fair_is_active(s) ? fair_share_of(fair, s) : 0,
            .held = s->held,
            .waiting = s->entries.count,
            .ahead_s = s->virtual_time - s->tenant->searches_time,
            .estimate = s->estimate,
        };

        visit(owner, &view);
    }
}

static bool tenants_check(const struct fair *fair)
{
    double weight = 0;
    size_t active = 0;

    for (const struct fair_tenant *t = fair->tenants; t; t = t->hh.next) {
        if ((t->waiting.count > 0) != (t->index != HEAP_NOT_IN) || !heap_check(&t->waiting)) {
            return false;
        }
        weight += t->active > 0 ? t->weight : 0;
        active += t->active > 0;
    }
    return active == fair->active && fabs(weight - fair->active_weight) < 1e-6 * (1 + weight);
}

bool fair_check(const struct fair *fair)
{
    size_t entries = 0;
    size_t taken = 0;

    for (const struct fair_search *s = fair->searches; s; s = s->hh.next) {
        if ((s->entries.count > 0) != (s->index != HEAP_NOT_IN) || !heap_check(&s->entries)) {
            return false;
        }
        entries += s->entries.count;
        taken += s->taken;
    }
    return entries == fair->count && taken == fair->taken && heap_check(&fair->waiting) &&
           tenants_check(fair);
}
