#include "worker/outcomes/outcome.h"

#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>

#define LOG2_MAX 40.0 // a larger speedup, as log2, is no measurement

bool outcome_is_usable(const struct outcome *outcome)
{
    if (!outcome->candidate || !verdict_known(outcome->verdict)) {
        return false;
    }
    switch ((enum verdict)outcome->verdict) {
    case VERDICT_NONE:
    case VERDICT_COMPILE_ERROR:
    case VERDICT_QUARANTINED:
        return false;
    default:
        return !verdict_is_ratio(outcome->verdict) || fabs(outcome->log2) <= LOG2_MAX;
    }
}

bool outcome_is_compile_failure(const struct outcome *outcome)
{
    return outcome->candidate && outcome->verdict == VERDICT_COMPILE_ERROR;
}

void outcome_identity(const char *problem, const struct digest *digest,
                      char ret[static OUTCOME_IDENTITY_MAX])
{
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(digest, hex);
    if (digest_is_zero(digest)) {
        snprintf(ret, OUTCOME_IDENTITY_MAX, "name:%s", problem);
    } else {
        snprintf(ret, OUTCOME_IDENTITY_MAX, "%s", hex);
    }
}

void outcome_group_key(const char *identity, const char *device_class,
                       char ret[static OUTCOME_GROUP_KEY_MAX])
{
    snprintf(ret, OUTCOME_GROUP_KEY_MAX, "%s\n%s", identity, device_class);
}
