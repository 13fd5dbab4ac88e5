// Shares over time: the queue against devices that are only numbers. Two hours pass in a moment.
#include "common/mem.h"
#include "common/stats.h"
#include "daemon/sched/queue.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define DEVICES 8
#define END_S 7200.0
#define SOURCES_MAX 8
#define WAITS_MAX 4096

struct source;

struct item {
    struct queue_entry entry; // first
    struct source *source;
    double arrived_s;
    double seconds; // it will hold its device
};

// A search that submits.
struct source {
    struct fair_who who;
    enum queue_class in;
    size_t in_flight; // always so many; 0: at random times
    double rate;      // … so many a second
    double (*cost)(struct stats_rng *rng);
    double next_s; // arrival at random times
    double used_s; // device-seconds
    double wait_s[WAITS_MAX];
    size_t waits;
};

struct device {
    struct item *item; // NULL: idle
    double began_s;
    double ends_s;
    struct queue_ticket ticket;
};

struct pool {
    struct queue *queue;
    struct device device[DEVICES];
    uint32_t idle;
    struct source *source[SOURCES_MAX];
    size_t sources;
    struct stats_rng rng;
    uint64_t order;
    double now_s;
    double ticked_s;
};

static double exponential(struct stats_rng *rng, double mean)
{
    return -mean * log(1 - stats_rng_unit(rng));
}

static double cost_short(struct stats_rng *rng)
{
    return 0.2 + exponential(rng, 0.8);
}

static double cost_long_tailed(struct stats_rng *rng)
{
    return fmin(300, 0.5 * pow(1 - stats_rng_unit(rng), -1 / 0.8)); // Pareto
}

static double cost_hangs(struct stats_rng *rng)
{
    return stats_rng_unit(rng) < 0.2 ? 60 : cost_short(rng);
}

static double cost_interactive(struct stats_rng *rng)
{
    return 0.1 + 0.8 * stats_rng_unit(rng);
}

static double cost_second(struct stats_rng *rng)
{
    (void)rng;
    return 1;
}

static void submit(struct pool *pool, struct source *source)
{
    struct item *item = xcalloc(1, sizeof(*item));

    item->source = source;
    item->arrived_s = pool->now_s;
    item->seconds = source->cost(&pool->rng);
    queue_add(pool->queue, &item->entry, source->in, &source->who, 0, pool->order++);
}

static void finish(struct pool *pool, struct device *device)
{
    struct item *item = device->item;
    double held_s = pool->now_s - device->began_s;

    item->source->used_s += held_s;
    pool->idle++;
    queue_settle(pool->queue, &device->ticket, held_s, false);
    device->item = NULL;
    if (item->source->in_flight > 0) {
        submit(pool, item->source);
    }
    free(item);
}

static struct device *free_slot(struct pool *pool)
{
    for (size_t i = 0; i < DEVICES; i++) {
        if (!pool->device[i].item) {
            return &pool->device[i];
        }
    }
    fail_msg("more jobs than devices");
    return NULL;
}

static void start_all(struct pool *pool)
{
    struct fair_terms terms = {.devices = DEVICES};
    struct queue_ticket ticket;
    struct item *item;

    while (pool->idle > 0 &&
           (item = (struct item *)queue_take(pool->queue, &terms, pool->now_s, &ticket))) {
        struct device *device = free_slot(pool);
        struct source *source = item->source;

        if (source->waits < WAITS_MAX) {
            source->wait_s[source->waits++] = pool->now_s - item->arrived_s;
        }
        *device = (struct device){.item = item,
                                  .began_s = pool->now_s,
                                  .ends_s = pool->now_s + item->seconds,
                                  .ticket = ticket};
        pool->idle--;
    }
}

// As the daemon does once a second.
static void tick(struct pool *pool)
{
    for (size_t i = 0; i < DEVICES; i++) {
        if (pool->device[i].item) {
            queue_refresh(pool->queue, &pool->device[i].ticket,
                          pool->now_s - pool->device[i].began_s);
        }
    }
    queue_sweep(pool->queue);
    assert_true(queue_check(pool->queue));
}

static void arrive(struct pool *pool)
{
    for (size_t i = 0; i < pool->sources; i++) {
        struct source *source = pool->source[i];

        if (source->in_flight == 0 && source->next_s <= pool->now_s) {
            submit(pool, source);
            source->next_s = pool->now_s + exponential(&pool->rng, 1 / source->rate);
        }
    }
}

static double next_event(const struct pool *pool)
{
    double next = pool->ticked_s + 1;

    for (size_t i = 0; i < DEVICES; i++) {
        next = pool->device[i].item ? fmin(next, pool->device[i].ends_s) : next;
    }
    for (size_t i = 0; i < pool->sources; i++) {
        next = pool->source[i]->in_flight == 0 ? fmin(next, pool->source[i]->next_s) : next;
    }
    return next;
}

static void step(struct pool *pool)
{
    pool->now_s = next_event(pool);
    for (size_t i = 0; i < DEVICES; i++) {
        if (pool->device[i].item && pool->device[i].ends_s <= pool->now_s) {
            finish(pool, &pool->device[i]);
        }
    }
    if (pool->now_s >= pool->ticked_s + 1) {
        pool->ticked_s = pool->now_s;
        tick(pool);
    }
    arrive(pool);
    start_all(pool);
}

static void begin(struct pool *pool, uint64_t seed)
{
    pool->queue = queue_create();
    pool->idle = DEVICES;
    stats_rng_init(&pool->rng, seed, 0);
    for (size_t i = 0; i < pool->sources; i++) {
        struct source *source = pool->source[i];

        source->who.search = source->who.search ? source->who.search : i + 1;
        for (size_t k = 0; k < source->in_flight; k++) {
            submit(pool, source);
        }
    }
    start_all(pool);
}

static void run_until(struct pool *pool, double end_s)
{
    while (next_event(pool) <= end_s) {
        step(pool);
    }
}

// What waits or runs is freed; its tickets are settled.
static void end(struct pool *pool)
{
    for (size_t i = 0; i < pool->sources; i++) {
        pool->source[i]->in_flight = 0;
    }
    for (size_t i = 0; i < DEVICES; i++) {
        if (pool->device[i].item) {
            finish(pool, &pool->device[i]);
        }
    }
    const struct fair_terms all = {.devices = 0};
    struct queue_ticket ticket;
    struct item *item;
    while ((item = (struct item *)queue_take(pool->queue, &all, pool->now_s, &ticket))) {
        queue_settle(pool->queue, &ticket, 0, true);
        free(item);
    }
    assert_int_equal(queue_count(pool->queue), 0);
    queue_free(pool->queue);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double wait_quantile(struct source *source, double q)
{
    assert_true(source->waits > 0);
    qsort(source->wait_s, source->waits, sizeof(double), compare);
    return source->wait_s[(size_t)(q * (double)(source->waits - 1))];
}

static struct source *new_source(double weight, size_t in_flight,
                                 double (*cost)(struct stats_rng *rng))
{
    struct source *source = xcalloc(1, sizeof(*source));

    source->who = (struct fair_who){.tenant = 1, .tenant_weight = 1, .weight = weight};
    source->in_flight = in_flight;
    source->cost = cost;
    return source;
}

// Short jobs, long-tailed ones and hangs, a search of weight two, and somebody who looks at a
// kernel now and then: whatever their jobs cost, they get what their weights say.
static void mix(uint64_t seed)
{
    struct pool pool = {.sources = 5};

    pool.source[0] = new_source(1, 200, cost_short);
    pool.source[1] = new_source(1, 200, cost_long_tailed);
    pool.source[2] = new_source(1, 200, cost_hangs);
    pool.source[3] = new_source(2, 200, cost_short);
    pool.source[4] = new_source(1, 0, cost_interactive);
    pool.source[4]->rate = 0.2;
    pool.source[4]->in = QUEUE_INTERACTIVE;
    begin(&pool, seed);
    run_until(&pool, END_S);
    double used = 0;
    for (size_t i = 0; i < 4; i++) {
        used += pool.source[i]->used_s;
    }
    print_message("seed %llu: shares", (unsigned long long)seed);
    const double want[4] = {20, 20, 20, 40};
    for (size_t i = 0; i < 4; i++) {
        double share = 100 * pool.source[i]->used_s / used;

        print_message(" %.2f", share);
        assert_true(fabs(share - want[i]) < 1);
    }
    print_message(", interactive waits p50 %.2f s, p99 %.2f s\n",
                  wait_quantile(pool.source[4], 0.5), wait_quantile(pool.source[4], 0.99));
    assert_true(wait_quantile(pool.source[4], 0.99) < 5);
    assert_true(used > 0.99 * DEVICES * (END_S - 1200)); // and nothing lay idle
    end(&pool);
    for (size_t i = 0; i < pool.sources; i++) {
        free(pool.source[i]);
    }
}

static void shares_follow_the_weights(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        mix(seed);
    }
}

// The same mix, four tenants of two searches each; weights of both levels multiply.
static void tenants_and_searches_nest(void **state)
{
    double (*const cost[4])(struct stats_rng *) = {cost_short, cost_hangs, cost_short,
                                                   cost_long_tailed};

    (void)state;
    struct pool pool = {.sources = 8};
    for (size_t i = 0; i < 8; i++) {
        pool.source[i] = new_source(i % 2 ? 3 : 1, 50, cost[i % 4]);
        pool.source[i]->who.tenant = 1 + i / 2;
        pool.source[i]->who.tenant_weight = i / 2 == 3 ? 2 : 1; // of 1 + 1 + 1 + 2
    }
    begin(&pool, 11);
    run_until(&pool, END_S);
    double used = 0;
    for (size_t i = 0; i < 8; i++) {
        used += pool.source[i]->used_s;
    }
    for (size_t i = 0; i < 8; i++) {
        double tenant = i / 2 == 3 ? 40 : 20;
        double want = i % 2 ? tenant * 3 / 4 : tenant / 4;

        assert_true(fabs(100 * pool.source[i]->used_s / used - want) < 1);
    }
    end(&pool);
    for (size_t i = 0; i < 8; i++) {
        free(pool.source[i]);
    }
}

// The longest that a search of one job now and then waits beside another one.
static double wait_beside(size_t flood)
{
    struct pool pool = {.sources = 2};

    pool.source[0] = new_source(1, flood, cost_second);
    pool.source[1] = new_source(1, 0, cost_second);
    pool.source[1]->rate = 0.1;
    pool.source[1]->next_s = 1;
    begin(&pool, 3);
    run_until(&pool, 1000);
    double wait = wait_quantile(pool.source[1], 1);
    end(&pool);
    free(pool.source[0]);
    free(pool.source[1]);
    return wait;
}

static void a_flood_of_one_search_leaves_the_wait_of_another(void **state)
{
    double little = wait_beside(DEVICES);
    double flood = wait_beside(100000);

    (void)state;
    assert_true(flood < little + 0.01);
    assert_true(flood <= 1); // what is left of one job
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_follow_the_weights),
        cmocka_unit_test(tenants_and_searches_nest),
        cmocka_unit_test(a_flood_of_one_search_leaves_the_wait_of_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
