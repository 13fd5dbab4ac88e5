// Stdout belongs to the frames: it is moved aside first, so that nothing that the driver prints for a
// candidate (an assertion's text) can get between them.
#include "executor/gpu/serve.h"
#include "common/exit.h"
#include "common/mem.h"
#include "executor/frame.h"
#include "executor/gpu/gpu.h"
#include "executor/gpu/measure.h"
#include "executor/gpu/oracle.h"
#include "proto/messages.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PLAN_MAX ((size_t)128 << 20)

static int take_stdout(int *ret_fd, struct err *err)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "moving stdout aside");
    }
    *ret_fd = fd;
    return 0;
}

static int answer(int out, const struct bytes *packed_plan, struct gpu *gpu, struct oracle *oracle,
                  bool *ret_retire, struct err *err)
{
    struct measure_plan plan;
    int rc = message_read(&measure_plan_message, &plan, packed_plan->data, packed_plan->len, err);

    if (rc != 0) {
        return rc;
    }
    struct measure_outcome outcome;
    rc = measure_cuda(&plan, gpu, oracle, &outcome, err);
    struct strbuf packed = STRBUF_INIT;
    if (rc == 0) {
        *ret_retire = outcome.retire;
        rc = message_pack(&measure_outcome_message, &outcome, &packed, err);
        message_clear(&measure_outcome_message, &outcome);
    }
    if (rc == 0) {
        struct bytes bytes = {.data = (unsigned char *)packed.data, .len = packed.len};

        rc = frame_write(out, &bytes, err);
    }
    strbuf_release(&packed);
    message_clear(&measure_plan_message, &plan);
    return rc;
}

int serve_cuda(const char *uuid, struct err *err)
{
    struct oracle oracle = {.socket = -1};
    struct gpu gpu = {.device = 0};
    struct bytes ready = {.len = 0}, plan;
    bool retire = false, ended = false;
    int out = -1, rc = take_stdout(&out, err);

    if (rc != 0) {
        goto out;
    }
    rc = oracle_start(&oracle, uuid, err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_open(&gpu, uuid, err);
    if (rc != 0) {
        goto out;
    }
    rc = oracle_ready(&oracle, err);
    if (rc != 0) {
        goto out;
    }
    rc = frame_write(out, &ready, err);
out:
    while (rc == 0 && !retire) {
        rc = frame_read(STDIN_FILENO, &plan, PLAN_MAX, &ended, err);
        if (rc != 0 || ended) {
            break;
        }
        rc = answer(out, &plan, &gpu, &oracle, &retire, err);
        bytes_clear(&plan);
    }
    oracle_stop(&oracle);
    if (gpu.hung) {
        if (rc != 0) { // as main would say it
            fprintf(stderr, "kcast-exec: %s\n", err->text);
        }
        _exit(rc == 0 ? EXIT_OK : EXIT_SYSTEM);
    }
    gpu_close(&gpu);
    return rc;
}
