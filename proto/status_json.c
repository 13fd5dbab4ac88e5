#include "proto/status_json.h"

#include "proto/message.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <math.h>

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text(const char *value)
{
    json_t *ret = value ? json_string(value) : NULL;
    return ret ? ret : json_null();
}

static json_t *facts(const struct fact *fact, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        double value = fact[i].value;
        bool whole = isfinite(value) && fabs(value) <= 0x1p53 && value == floor(value);
        json_object_set_new(object, fact[i].name,
                            whole ? json_integer((json_int_t)value) : number(value));
    }
    return object;
}

static json_t *device(const struct device_info *info)
{
    json_t *object = message_json_value(&device_info_message, info);
    json_object_set_new(object, "class", text(info->device_class));
    json_object_set_new(object, "language", text(info->language));
    json_object_set_new(object, "reason", text(info->reason));
    json_object_set_new(object, "held_seconds", number(info->held_seconds));
    json_object_set_new(object, "utilisation", number(info->utilisation));
    json_object_set_new(object, "utilisation_minute", number(info->utilisation_minute));
    json_object_set_new(object, "control",
                        info->control ? json_pack("[o, o]", number(exp2(info->control->lo)),
                                                  number(exp2(info->control->hi)))
                                      : json_null());
    json_object_set_new(object, "facts", facts(info->facts, info->facts_count));
    json_object_set_new(object, "readings", facts(info->readings, info->readings_count));
    return object;
}

static json_t *share(const struct share_info *info)
{
    json_t *object = message_json_value(&share_info_message, info);
    json_object_set_new(object, "search", text(info->search));
    json_object_set_new(object, "device_class", text(info->device_class));
    json_object_set_new(object, "queue_class", text(info->queue_class));
    json_object_set_new(object, "weight", number(info->weight));
    json_object_set_new(object, "tenant_weight", number(info->tenant_weight));
    json_object_set_new(object, "used_seconds", number(info->used_seconds));
    json_object_set_new(object, "share", number(info->share));
    json_object_set_new(object, "recent", number(info->recent));
    json_object_set_new(object, "budget_seconds", number(info->budget_seconds));
    json_object_set_new(object, "per_hour_seconds", number(info->hour_seconds));
    json_object_set_new(object, "per_hour_left", number(info->left_seconds));
    return object;
}

json_t *status_json(const struct status *status, const char *pool)
{
    json_t *object = json_pack("{s:i, s:o}", "schema", JSON_SCHEMA, "pool", text(pool));
    json_t *fields = message_json_value(&status_message, status);
    json_t *devices = json_array(), *shares = json_array(), *jobs = json_object();
    json_object_update(object, fields);
    json_decref(fields);
    for (size_t i = 0; i < status->devices_count; i++) {
        json_array_append_new(devices, device(&status->devices[i]));
    }
    for (size_t i = 0; i < status->shares_count; i++) {
        json_array_append_new(shares, share(&status->shares[i]));
    }
    for (size_t i = 0; i < status->states_count; i++) {
        json_object_set_new(jobs, job_state_name(i), json_integer((json_int_t)status->states[i]));
    }
    json_object_set_new(object, "devices", devices);
    json_object_set_new(object, "shares", shares);
    json_object_set_new(object, "jobs", jobs);
    json_object_set_new(object, "uptime_seconds", number(status->uptime_seconds));
    json_object_set_new(object, "sandbox", text(status->sandbox));
    json_object_set_new(object, "state_dir", text(status->state_dir));
    json_object_set_new(object, "illness", text(status->illness));
    json_object_set_new(object, "worker", json_null());
    return object;
}
