#include "tests/gpu/stream_run.h"
#include "common/mem.h"
#include "tests/gpu/stream_arm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP_FLUSHES 40 // before the first launch of a ring: about 2 ms, for the clocks to rise
#define DIFFERENCE 0.1     // of two outputs' norms: more is not rounding

struct run {
    struct stream_device *device;
    const struct stream_case *of;
    size_t count[PROBLEM_TENSOR_MAX], last[PROBLEM_TENSOR_MAX], bytes[PROBLEM_TENSOR_MAX];
    size_t at[PROBLEM_TENSOR_MAX];         // of an input within a slot of the ring
    size_t slot_bytes, slots;              // of the ring
    cu_pointer tensor[PROBLEM_TENSOR_MAX]; // on the device; the arms share them
    cu_pointer spare;                      // as large as the largest input
    struct stream_arm arm[STREAM_ARMS_MAX];
};

static bool is_input(const struct run *run, size_t t)
{
    return run->of->problem->tensor[t].direction != DIRECTION_OUT;
}

// ---- memory ----

static int measure_tensors(struct run *run, size_t *ret_largest, struct err *err)
{
    const struct problem *problem = run->of->problem;
    int rc = 0;

    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        rc = problem_elements(problem, t, run->of->shape, &run->count[t], err);
        if (rc == 0) {
            rc = problem_last_extent(problem, t, run->of->shape, &run->last[t], err);
        }
        run->bytes[t] = run->count[t] * dtype_size(problem->tensor[t].dtype);
        if (rc == 0 && is_input(run, t)) {
            run->at[t] = run->slot_bytes;
            run->slot_bytes += (run->bytes[t] + 255) / 256 * 256;
            *ret_largest = run->bytes[t] > *ret_largest ? run->bytes[t] : *ret_largest;
        }
    }
    return rc;
}

static int place(struct run *run, struct err *err)
{
    const struct driver *d = &run->device->driver;
    size_t largest = 1;
    int rc = measure_tensors(run, &largest, err);

    if (rc != 0) {
        return rc;
    }
    if (run->slot_bytes > STREAM_RING_BYTES) {
        return err_set(err, ERR_LIMIT, "its inputs have more than %d bytes; choose smaller cases",
                       STREAM_RING_BYTES);
    }
    run->slots = run->slot_bytes > 0 ? STREAM_RING_BYTES / run->slot_bytes : 1;
    run->slots = run->slots < STREAM_SLOTS_MAX ? run->slots : STREAM_SLOTS_MAX;
    rc = driver_check(d, d->allocate(&run->spare, largest), "memory on the GPU", err);
    for (size_t t = 0; t < run->of->problem->tensor_count && rc == 0; t++) {
        rc = driver_check(d, d->allocate(&run->tensor[t], run->bytes[t]), "memory on the GPU", err);
    }
    for (size_t i = 0; i < run->of->arms && rc == 0; i++) {
        rc = stream_arm_open(&run->arm[i], run->device, run->of->code[i], run->of->problem,
                             run->of->shape, run->tensor, err);
    }
    return rc;
}

static void release(struct run *run)
{
    const struct driver *d = &run->device->driver;

    for (size_t i = 0; i < run->of->arms; i++) {
        if (run->arm[i].code) {
            stream_arm_release(&run->arm[i], run->device);
        }
    }
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        if (run->tensor[t]) {
            (void)d->release(run->tensor[t]);
        }
    }
    if (run->spare) {
        (void)d->release(run->spare);
    }
}

// ---- one launch ----

static int flush(struct stream_device *device, struct err *err)
{
    const struct driver *d = &device->driver;

    return driver_check(
        d, d->set_words(device->flush, device->flushes++, device->flush_bytes / 4, device->stream),
        "flushing the cache", err);
}

// Queues copies of the slot's data to the inputs, or of the inputs to the spare memory, which
// brings them into the cache.
static int copy_inputs(struct run *run, size_t slot, bool to_spare, struct err *err)
{
    const unsigned char *from = run->device->ring + slot * run->slot_bytes;
    const struct driver *d = &run->device->driver;
    cu_stream stream = run->device->stream;
    int rc = 0;

    for (size_t t = 0; t < run->of->problem->tensor_count && rc == 0; t++) {
        if (!is_input(run, t)) {
            continue;
        }
        rc = driver_check(
            d,
            to_spare ? d->copy(run->spare, run->tensor[t], run->bytes[t], stream)
                     : d->copy_to_device(run->tensor[t], from + run->at[t], run->bytes[t], stream),
            "copying new data", err);
    }
    return rc;
}

// Queues all that is done before the first event of a launch.
static int lead_in(struct run *run, size_t slot, size_t arm, struct err *err)
{
    bool cold = run->of->problem->cache == CACHE_COLD;
    int rc = cold ? 0 : flush(run->device, err);

    if (rc == 0) {
        rc = copy_inputs(run, slot, false, err);
    }
    if (rc == 0) {
        rc = stream_arm_clear(&run->arm[arm], run->device, err);
    }
    if (rc == 0) {
        rc = cold ? flush(run->device, err) : copy_inputs(run, slot, true, err);
    }
    return rc;
}

static int queue_launch(struct run *run, size_t slot, size_t arm, struct err *err)
{
    const struct driver *d = &run->device->driver;
    cu_stream stream = run->device->stream;
    cu_event *event = run->device->event[slot][arm];
    int rc = lead_in(run, slot, arm, err);

    if (rc == 0) {
        rc = driver_check(d, d->event_record(event[0], stream), "recording an event", err);
    }
    if (rc == 0) {
        rc = stream_arm_launch(&run->arm[arm], run->device, err);
    }
    if (rc == 0) {
        rc = driver_check(d, d->event_record(event[1], stream), "recording an event", err);
    }
    return rc;
}

static int finish(struct run *run, struct err *err)
{
    const struct driver *d = &run->device->driver;

    return driver_check(d, d->stream_synchronize(run->device->stream), "running the kernels", err);
}

static void draw_slot(struct run *run, size_t slot)
{
    unsigned char *to = run->device->ring + slot * run->slot_bytes;

    for (size_t t = 0; t < run->of->problem->tensor_count; t++) {
        if (is_input(run, t)) {
            draw_fill(run->of->draw[t], run->count[t], run->last[t], to + run->at[t]);
        }
    }
}

// ---- outputs ----

static double half(uint16_t code)
{
    int exponent = code >> 10 & 31, mantissa = code & 1023;
    double size = exponent == 31  ? (mantissa ? (double)NAN : (double)INFINITY)
                  : exponent == 0 ? ldexp(mantissa, -24)
                                  : ldexp(mantissa + 1024, exponent - 25);

    return code & 0x8000 ? -size : size;
}

static double upper_half(uint16_t code)
{
    uint32_t whole = (uint32_t)code << 16;
    float value;

    memcpy(&value, &whole, sizeof(value));
    return (double)value;
}

static double element(enum dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case DTYPE_F32:
        return (double)((const float *)data)[i];
    case DTYPE_F64:
        return ((const double *)data)[i];
    case DTYPE_I32:
        return ((const int32_t *)data)[i];
    case DTYPE_I64:
        return (double)((const int64_t *)data)[i];
    case DTYPE_F16:
        return half(((const uint16_t *)data)[i]);
    case DTYPE_BF16:
        return upper_half(((const uint16_t *)data)[i]);
    case DTYPE_I8:
        return ((const int8_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

static int read_output(struct run *run, size_t t, void *to, struct err *err)
{
    const struct driver *d = &run->device->driver;
    int rc =
        driver_check(d, d->copy_to_host(to, run->tensor[t], run->bytes[t], run->device->stream),
                     "copying an output", err);

    return rc == 0 ? finish(run, err) : rc;
}

// Whether a differs from b by less than DIFFERENCE of b, both taken as vectors.
static bool is_close(enum dtype dtype, const void *a, const void *b, size_t count)
{
    double apart = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        double x = element(dtype, a, i), y = element(dtype, b, i);
        apart += (x - y) * (x - y);
        norm += y * y;
    }
    return apart <= DIFFERENCE * DIFFERENCE * norm;
}

// Queues setting every output to NaN, or to -1, so that an arm which writes nothing is seen.
static int spoil_outputs(struct run *run, struct err *err)
{
    const struct driver *d = &run->device->driver;
    int rc = 0;

    for (size_t t = 0; t < run->of->problem->tensor_count && rc == 0; t++) {
        if (run->of->problem->tensor[t].direction == DIRECTION_OUT) {
            rc = driver_check(
                d, d->set_bytes(run->tensor[t], 0xff, run->bytes[t], run->device->stream),
                "spoiling an output", err);
        }
    }
    return rc;
}

// Runs the arm once on slot 0 and reads its outputs into kept[], or compares them with those.
static int try_arm(struct run *run, size_t arm, void **kept, bool *ret_agrees, struct err *err)
{
    int rc = spoil_outputs(run, err);

    if (rc == 0) {
        rc = queue_launch(run, 0, arm, err);
    }
    for (size_t t = 0; t < run->of->problem->tensor_count && rc == 0; t++) {
        if (run->of->problem->tensor[t].direction == DIRECTION_IN) {
            continue;
        }
        void *here = xmalloc(run->bytes[t]);
        rc = read_output(run, t, here, err);
        if (rc == 0 && !kept[t]) {
            kept[t] = here;
            continue;
        }
        *ret_agrees = *ret_agrees && rc == 0 &&
                      is_close(run->of->problem->tensor[t].dtype, here, kept[t], run->count[t]);
        free(here);
    }
    return rc;
}

// Runs every arm on the same contents before anything is timed.
static int try_all(struct run *run, struct stream_times *ret, struct err *err)
{
    void *kept[PROBLEM_TENSOR_MAX] = {NULL};
    int rc = 0;

    draw_slot(run, 0);
    for (size_t i = 0; i < run->of->arms && rc == 0; i++) {
        ret->agrees[i] = true;
        rc = try_arm(run, i, kept, &ret->agrees[i], err);
    }
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        free(kept[t]);
    }
    return rc;
}

// ---- the loop ----

// Queues the arms' launches on one slot, in random order.
static int queue_slot(struct run *run, size_t slot, struct err *err)
{
    size_t order[STREAM_ARMS_MAX] = {0};
    int rc = 0;

    for (size_t i = 0; i < run->of->arms; i++) {
        size_t other = stats_rng_below(&run->device->rng, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (size_t i = 0; i < run->of->arms && rc == 0; i++) {
        rc = queue_launch(run, slot, order[i], err);
    }
    return rc;
}

static int read_times(struct run *run, size_t slots, size_t round, struct stream_times *ret,
                      struct err *err)
{
    const struct driver *d = &run->device->driver;
    int rc = 0;

    for (size_t i = 0; i < slots * run->of->arms && rc == 0; i++) {
        size_t slot = i / run->of->arms, arm = i % run->of->arms;
        const cu_event *event = run->device->event[slot][arm];
        float ms = 0;
        rc = driver_check(d, d->event_elapsed(&ms, event[0], event[1]), "reading events", err);
        ret->ns[arm][round + slot] = (double)ms * 1e6;
    }
    return rc;
}

// Draws new contents for `slots` slots and runs the arms on them.
static int run_ring(struct run *run, size_t slots, size_t round, struct stream_times *ret,
                    struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < slots; i++) {
        draw_slot(run, i);
    }
    for (size_t i = 0; i < WARM_UP_FLUSHES && rc == 0; i++) {
        rc = flush(run->device, err);
    }
    for (size_t i = 0; i < slots && rc == 0; i++) {
        rc = queue_slot(run, i, err);
    }
    if (rc == 0) {
        rc = finish(run, err);
    }
    return rc == 0 ? read_times(run, slots, round, ret, err) : rc;
}

int stream_run(struct stream_device *device, const struct stream_case *of, struct stream_times *ret,
               struct err *err)
{
    struct run run = {.device = device, .of = of};

    *ret = (struct stream_times){.ns = {NULL}};
    for (size_t i = 0; i < of->arms; i++) {
        ret->ns[i] = xcalloc(of->rounds, sizeof(double));
    }
    int rc = place(&run, err);
    if (rc == 0) {
        rc = try_all(&run, ret, err);
    }
    for (size_t round = 0; round < of->rounds && rc == 0;) {
        size_t left = of->rounds - round, slots = left < run.slots ? left : run.slots;
        rc = run_ring(&run, slots, round, ret, err);
        round += slots;
    }
    release(&run);
    return rc;
}
