#include "daemon/store/cache.h"
#include "proto/result_check.h"
#include "proto/verdict.h"
#include <math.h>

struct digest cache_key(const struct job_spec *spec, const char *device_class, bool sandbox_off)
{
    struct digest_state *state = digest_begin();
    struct job_spec what = *spec; // shares the texts; never cleared
    struct bytes packed;

    what.device_class = NULL;
    what.anchor_log2 = NAN;
    what.precision_log2 = NAN;
    what.max_seconds = NAN;
    what.fresh = false;
    what.features_only = false;
    what.no_machine_code = false;
    packed = cache_pack(&job_spec_message, &what);
    digest_add_text(state, CACHE_METHOD);
    digest_add_text(state, device_class);
    digest_add_text(state, sandbox_off ? "off" : "on");
    digest_add(state, packed.data, packed.len);
    bytes_clear(&packed);
    return digest_end(state);
}

bool cache_answers(const struct result *cached, double cached_cap_s, const struct job_spec *spec,
                   double cap_s)
{
    double precision = isnan(spec->precision_log2) ? CACHE_PRECISION_LOG2 : spec->precision_log2;
    double cap = isnan(spec->max_seconds) ? cap_s : spec->max_seconds;
    const struct estimate *e = cached->speedup;

    // How long all launches together may take follows from the cap.
    if (cached->verdict == VERDICT_TIMEOUT) {
        return cap <= cached_cap_s;
    }
    if (!verdict_is_ratio(cached->verdict)) {
        return true;
    }
    if (!e) {
        return false;
    }
    if ((e->hi - e->lo) / 2 <= precision || e->lo > 0 || e->hi < 0) {
        return true;
    }
    if (cached->verdict == VERDICT_EQUIVALENT && verdict_is_tie(e->lo, e->hi, precision)) {
        return true;
    }
    return cap <= cached_cap_s && precision >= CACHE_PRECISION_LOG2;
}

struct bytes cache_pack(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;

    if (message_pack(message, value, &packed, NULL) != 0 || packed.truncated) {
        strbuf_release(&packed);
        return (struct bytes){0};
    }
    return strbuf_detach_bytes(&packed);
}

bool cache_adopt(const struct bytes *spec, double cached_cap_s, struct bytes *result)
{
    struct job_spec wanted;

    if (message_read(&job_spec_message, &wanted, spec->data, spec->len, NULL) != 0) {
        return false;
    }
    struct result cached;
    if (message_read(&result_message, &cached, result->data, result->len, NULL) != 0) {
        message_clear(&job_spec_message, &wanted);
        return false;
    }
    const struct result_expectation expectation = {.problem = wanted.problem,
                                                   .candidate = wanted.candidate,
                                                   .precision_log2 =
                                                       NAN}; // it may have been another
    bool answers = result_check(&cached, &expectation, NULL) == 0 &&
                   cache_answers(&cached, cached_cap_s, &wanted, CACHE_CAP_S);
    if (answers) {
        cached.cached = true;
        bytes_clear(result);
        *result = cache_pack(&result_message, &cached);
    }
    message_clear(&result_message, &cached);
    message_clear(&job_spec_message, &wanted);
    return answers && result->data;
}
