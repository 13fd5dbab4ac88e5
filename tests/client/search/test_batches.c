// The ends of batches, the batch of a candidate, and what each of them sees: with small batches at
// first, then usual ones, then the widest, and with batches of before an extension.
#include "client/search/batches.h"

#include "client/run/run.h"
#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>

#define BATCHES 200

struct sizes {
    uint64_t batch, wide, widest, lag;
};

static const struct sizes all_sizes[] = {
    {1, 1, 1, 2},   {4, 4, 4, 9}, {4, 8, 8, 5},  {4, 4, 10, 9},
    {3, 7, 64, 16}, {4, 4, 8, 2}, {1, 1, 64, 1},
};

static uint64_t size_of(const struct sizes *sizes, uint64_t batch)
{
    return batch <= PIPELINE_EARLY       ? sizes->batch
           : batch <= RUN_BATCHES_NARROW ? sizes->wide
                                         : sizes->widest;
}

// Calls check for all sizes, and for several numbers of batches of before an extension, which ended
// early.
static void for_all(void (*check)(struct batches *batches, const struct sizes *sizes))
{
    static const uint64_t pasts[] = {0, 1, PIPELINE_EARLY, 30, RUN_BATCHES_NARROW, 100};
    for (size_t i = 0; i < ARRAY_LEN(all_sizes) * ARRAY_LEN(pasts); i++) {
        const struct sizes *sizes = &all_sizes[i / ARRAY_LEN(pasts)];
        struct batches batches = {.batch = sizes->batch,
                                  .wide = sizes->wide,
                                  .widest = sizes->widest,
                                  .lag = sizes->lag,
                                  .lag_part = PIPELINE_LAG_PART};
        for (uint64_t last = 1; last <= pasts[i % ARRAY_LEN(pasts)]; last++) {
            batches_extend(&batches, last);
        }
        check(&batches, sizes);
        batches_clear(&batches);
    }
}

static void check_ends(struct batches *b, const struct sizes *sizes)
{
    uint64_t end = b->past; // one candidate in each of before
    for (uint64_t batch = b->past + 1; batch <= BATCHES; batch++) {
        assert_int_equal(batches_end(b, batch - 1) + 1, end + 1);
        end += size_of(sizes, batch);
        assert_int_equal(batches_end(b, batch), end);
    }
}

static void every_batch_has_its_size(void **state)
{
    (void)state;
    for_all(check_ends);
}

static void check_counts(struct batches *b, const struct sizes *sizes)
{
    uint64_t count = b->past;
    assert_int_equal(batches_count(b, count), b->past);
    for (uint64_t batch = b->past + 1; batch <= BATCHES; batch++) {
        for (uint64_t i = 0; i < size_of(sizes, batch); i++) {
            count++;
            assert_int_equal(batches_count(b, count), batch);
        }
    }
}

static void every_candidate_has_its_batch(void **state)
{
    (void)state;
    for_all(check_counts);
}

// The lag counts batches, and of the widest the candidates before the batch, too.
static void check_seen(struct batches *b, const struct sizes *sizes)
{
    uint64_t before = 0, most = sizes->lag * sizes->wide;
    for (uint64_t batch = 1; batch <= BATCHES; batch++) {
        uint64_t seen = batches_seen(b, batch);
        assert_true(seen < batch);
        assert_true(seen >= before);
        before = seen;
        if (batch <= RUN_BATCHES_NARROW || sizes->widest == sizes->wide) {
            assert_true(batch <= sizes->lag || batch - seen <= sizes->lag);
            assert_true(batch < 3 * sizes->lag || batch - seen == sizes->lag);
            continue;
        }
        uint64_t last = batches_end(b, batch - 1);
        assert_true(batch - seen <= sizes->lag);
        assert_true(seen == batch - 1 || last - batches_end(b, seen) <= most);
        assert_true(batch - seen == sizes->lag || last - batches_end(b, seen - 1) > most);
    }
}

static void what_batches_see_grows(void **state)
{
    (void)state;
    for_all(check_seen);
}

static void a_run_says_the_sizes(void **state)
{
    static const struct run_started none = {0}, some = {.batch = 3, .wide = 5, .lag = 7},
                                    all = {.batch = 4, .wide = 4, .widest = 10, .lag = 9},
                                    much = {.batch = 1000, .lag = 1000};
    (void)state;
    struct batches b = batches_of(&none, false);
    assert_int_equal(b.batch, RUN_BATCH_DEFAULT);
    assert_int_equal(b.widest, RUN_BATCH_DEFAULT);
    b = batches_of(&some, false);
    assert_int_equal(b.wide, 5);
    assert_int_equal(b.widest, 5);
    assert_int_equal(b.lag, 7);
    b = batches_of(&all, true);
    assert_int_equal(b.widest, 10);
    assert_int_equal(b.lag_part, PIPELINE_LAG_PART_SCREENED);
    b = batches_of(&much, false);
    assert_int_equal(b.widest, RUN_BATCH_MAX);
    assert_int_equal(b.lag, RUN_LAG_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_batch_has_its_size),
        cmocka_unit_test(every_candidate_has_its_batch),
        cmocka_unit_test(what_batches_see_grows),
        cmocka_unit_test(a_run_says_the_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
