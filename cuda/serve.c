// Stdout belongs to the frames: it is moved aside first, so that nothing that the driver prints for a
// candidate (an assertion's text) can get between them.
#include "cuda/serve.h"
#include "common/exit.h"
#include "common/mem.h"
#include "cuda/gpu.h"
#include "cuda/measure.h"
#include "cuda/oracle.h"
#include "exec/frame.h"
#include "proto/all.h"
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
    struct strbuf packed = STRBUF_INIT;
    struct measure_report report;
    struct measure_plan plan;
    int status = message_read(&measure_plan_message, &plan, packed_plan->data, packed_plan->len,
                              err);

    if (status != 0) {
        return status;
    }
    status = measure_cuda(&plan, gpu, oracle, &report, err);
    if (status == 0) {
        *ret_retire = report.retire;
        status = message_pack(&measure_report_message, &report, &packed, err);
        message_clear(&measure_report_message, &report);
    }
    if (status == 0) {
        struct bytes bytes = {.data = (unsigned char *)packed.data, .len = packed.len};

        status = frame_write(out, &bytes, err);
    }
    strbuf_release(&packed);
    message_clear(&measure_plan_message, &plan);
    return status;
}

int serve_cuda(const char *uuid, struct err *err)
{
    struct oracle oracle = {.socket = -1};
    struct gpu gpu = {.device = 0};
    struct bytes ready = {.len = 0}, plan;
    bool retire = false, ended = false;
    int out = -1, status = take_stdout(&out, err);

    if (status == 0) {
        status = oracle_start(&oracle, uuid, err);
    }
    if (status == 0) {
        status = gpu_open(&gpu, uuid, err);
    }
    if (status == 0) {
        status = oracle_ready(&oracle, err);
    }
    if (status == 0) {
        status = frame_write(out, &ready, err);
    }
    while (status == 0 && !retire) {
        status = frame_read(STDIN_FILENO, &plan, PLAN_MAX, &ended, err);
        if (status != 0 || ended) {
            break;
        }
        status = answer(out, &plan, &gpu, &oracle, &retire, err);
        bytes_clear(&plan);
    }
    oracle_stop(&oracle);
    if (gpu.hung) {
        if (status != 0) { // as main would say it
            fprintf(stderr, "kcast-exec: %s\n", err->text);
        }
        _exit(status == 0 ? EXIT_OK : EXIT_SYSTEM);
    }
    gpu_close(&gpu);
    return status;
}
