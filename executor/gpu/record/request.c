#include "executor/gpu/record/request.h"
#include "common/mem.h"
#include "executor/gpu/record/recorder.h"
#include "problem/candidate_form.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <math.h>
#include <string.h>

#define MEMORY_MAX ((uint64_t)16 << 30) // of the GPU, for what a candidate allocates

static json_t *tensor_json(const struct tensor *tensor)
{
    static const char *const direction[] = {
        [DIRECTION_IN] = "in", [DIRECTION_OUT] = "out", [DIRECTION_INOUT] = "inout"};

    return json_pack("{s:s, s:s, s:s, s:b, s:{s:s, s:[f, f]}}", "name", tensor->name, "direction",
                     direction[tensor->direction], "dtype", dtype_name(tensor->dtype), "exact",
                     tensor_is_exact(tensor), "values", "distribution",
                     distribution_name(tensor->values.distribution), "value", tensor->values.a,
                     tensor->values.b);
}

static int shape_json(const struct tensor *tensor, const struct shape_case *shape, json_t *out,
                      struct err *err)
{
    int rc = 0;

    for (size_t axis = 0; axis < tensor->rank && rc == 0; axis++) {
        int64_t extent = 0;

        rc = expr_eval(&extent, tensor->shape[axis], shape->i, err);
        json_array_append_new(out, json_integer(extent));
    }
    return rc;
}

static int case_json(const struct problem *problem, const struct record_case *of, json_t *out,
                     struct err *err)
{
    json_t *values = json_object(), *shapes = json_array(), *addresses = json_array();
    json_t *bytes = json_array();
    int rc = 0;

    json_object_set_new(out, "values", values);
    json_object_set_new(out, "shapes", shapes);
    json_object_set_new(out, "addresses", addresses);
    json_object_set_new(out, "bytes", bytes);
    for (size_t i = 0; i < problem->param_count; i++) {
        json_object_set_new(values, problem->param[i].name,
                            problem->param[i].type == PARAM_INT ? json_integer(of->shape.i[i])
                                                                : json_real(of->shape.f[i]));
    }
    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        json_t *extents = json_array();

        json_array_append_new(shapes, extents);
        json_array_append_new(addresses, json_integer((json_int_t)of->at[t]));
        json_array_append_new(bytes, json_integer((json_int_t)of->sizes.bytes[t]));
        rc = shape_json(&problem->tensor[t], &of->shape, extents, err);
    }
    return rc;
}

static const char *form_name(const struct bytes *source)
{
    return candidate_form((const char *)source->data, source->len) == FORM_LAUNCHER ? "launcher"
                                                                                    : "python";
}

static json_t *params_json(const struct problem *problem)
{
    json_t *params = json_array();

    for (size_t i = 0; i < problem->param_count; i++) {
        json_array_append_new(params,
                              json_pack("{s:s, s:s}", "name", problem->param[i].name, "type",
                                        problem->param[i].type == PARAM_INT ? "int" : "f64"));
    }
    return params;
}

static json_t *tensors_json(const struct problem *problem)
{
    json_t *tensors = json_array();

    for (size_t t = 0; t < problem->tensor_count; t++) {
        json_array_append_new(tensors, tensor_json(&problem->tensor[t]));
    }
    return tensors;
}

int record_request_make(const struct record_request *what, struct bytes *ret,
                        bool *ret_source_is_text, struct err *err)
{
    json_t *request = json_object(), *cases = json_array();
    json_t *source = json_stringn((const char *)what->source->data, what->source->len);
    int rc = 0;

    *ret_source_is_text = source;
    json_object_set_new(request, "source", source ? source : json_string(""));
    json_object_set_new(request, "problem", json_string(what->problem->name));
    json_object_set_new(request, "form", json_string(form_name(what->source)));
    json_object_set_new(request, "role", json_string(what->role));
    json_object_set_new(request, "file", json_sprintf("%s.py", what->role)); // in messages
    json_object_set_new(request, "target", json_string(what->target));
    json_object_set_new(request, "device", json_string(what->device ? what->device : "0"));
    json_object_set_new(request, "library", json_string(RECORDER_LIBRARY));
    json_object_set_new(request, "base", json_integer((json_int_t)what->base));
    json_object_set_new(request, "memory", json_integer((json_int_t)MEMORY_MAX));
    json_object_set_new(request, "cpu_seconds", json_real(ceil(what->cpu_seconds)));
    json_object_set_new(request, "tensors", tensors_json(what->problem));
    json_object_set_new(request, "params", params_json(what->problem));
    json_object_set_new(request, "cases", cases);
    if (what->shared_bytes > 0) {
        json_object_set_new(request, "shared",
                            json_pack("[I, I]", (json_int_t)what->shared,
                                      (json_int_t)(what->shared + what->shared_bytes)));
    }
    for (size_t i = 0; i < what->case_count && rc == 0; i++) {
        json_t *one = json_object();

        json_array_append_new(cases, one);
        rc = case_json(what->problem, &what->cases[i], one, err);
    }
    if (rc == 0) {
        char *text = json_dumps(request, JSON_COMPACT);

        *ret = (struct bytes){.data = (unsigned char *)text, .len = text ? strlen(text) : 0};
        rc = text ? 0 : err_set(err, ERR_INTERNAL, "a request to the recorder");
    }
    json_decref(request);
    return rc;
}

enum verdict record_reply_verdict(const struct record_reply *reply, enum verdict otherwise)
{
    static const enum verdict may[] = {VERDICT_COMPILE_ERROR, VERDICT_REJECTED, VERDICT_CRASH};

    for (size_t i = 0; reply->verdict && i < ARRAY_LEN(may); i++) {
        if (strcmp(reply->verdict, verdict_name(may[i])) == 0) {
            return may[i];
        }
    }
    return otherwise;
}
