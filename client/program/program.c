// Design note. stdin is a file in memory, so that nothing is written while the program runs and a
// program that reads nothing does no harm. stdout and stderr are pipes that end when the last
// process that holds them is gone, which the keeper sees to; so the end of all three descriptors,
// these two and the keeper's report, is the end of the program.
#include "client/program/program.h"

#include "client/program/keeper.h"
#include "common/file.h"
#include "common/printable.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_BYTES 65536
#define PATIENCE_MS 10000 // with the keeper of a program that is killed

enum source { SOURCE_OUTPUT, SOURCE_ERRORS, SOURCE_STATUS, SOURCES };

struct program_run {
    struct program_bounds bounds;
    program_callback *callback; // NULL when nobody waits any more
    void *owner;
    struct keeper keeper; // life is -1 when it was closed
    uv_pipe_t pipe[SOURCES];
    uv_timer_t timer;
    char buffer[READ_BYTES];
    struct strbuf output;
    char words[PROGRAM_WORDS_MAX + 1];
    size_t words_len; // of the line that is being read
    bool line_ended;
    int status;
    size_t status_len; // bytes of it
    unsigned open;     // sources that have not ended
    unsigned handles;  // of libuv that are not closed
    uint64_t began_ns;
    bool late, flooded;
};

// ---- the end ----

static void free_run(struct program_run *program)
{
    strbuf_release(&program->output);
    free(program);
}

static void on_closed(uv_handle_t *handle)
{
    struct program_run *program = handle->data;

    if (--program->handles == 0) {
        free_run(program);
    }
}

static void close_handles(struct program_run *program)
{
    for (size_t i = 0; i < SOURCES; i++) {
        uv_close((uv_handle_t *)&program->pipe[i], on_closed);
    }
    uv_close((uv_handle_t *)&program->timer, on_closed);
}

// Has the keeper kill everything.
static void end_life(struct program_run *program)
{
    if (program->keeper.life >= 0) {
        close(program->keeper.life);
        program->keeper.life = -1;
    }
}

static void finish(struct program_run *program)
{
    struct program_end end = {
        .output = &program->output,
        .late = program->late,
        .flooded = program->flooded,
        .status = program->status_len == sizeof(program->status) ? program->status : SIGKILL,
        .seconds = (double)(uv_hrtime() - program->began_ns) * 1e-9,
    };

    end_life(program);
    (void)waitpid(program->keeper.pid, NULL, 0); // it has nothing left to do but to end
    program->words[program->words_len] = '\0';
    printable_clean(program->words, program->words_len);
    memcpy(end.words, program->words, program->words_len + 1);
    program->callback(program->owner, &end);
    close_handles(program);
}

// ---- what comes ----

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct program_run *program = handle->data;

    (void)suggested;
    *ret = uv_buf_init(program->buffer, sizeof(program->buffer));
}

static void take_output(struct program_run *program, const char *data, size_t len)
{
    size_t room = program->bounds.output_max - program->output.len;

    strbuf_add(&program->output, data, len < room ? len : room);
    if (len > room && !program->flooded) {
        program->flooded = true;
        end_life(program);
    }
}

// Keeps the beginning of the last line that is not empty.
static void take_errors(struct program_run *program, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\n') {
            program->line_ended = program->words_len > 0;
        } else {
            program->words_len = program->line_ended ? 0 : program->words_len;
            program->line_ended = false;
            if (program->words_len < PROGRAM_WORDS_MAX && data[i] != '\0') {
                program->words[program->words_len++] = data[i];
            }
        }
    }
}

static void take_status(struct program_run *program, const char *data, size_t len)
{
    for (size_t i = 0; i < len && program->status_len < sizeof(program->status); i++) {
        ((char *)&program->status)[program->status_len++] = data[i];
    }
}

// A process that cannot be killed holds stdout or stderr: it waits for the kernel.
static void on_left(uv_timer_t *timer)
{
    struct program_run *program = timer->data;

    for (size_t i = 0; i < SOURCES; i++) {
        (void)uv_read_stop((uv_stream_t *)&program->pipe[i]);
    }
    finish(program);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct program_run *program = stream->data;

    if (len < 0) {
        (void)uv_read_stop(stream);
        if (--program->open == 0) {
            finish(program);
        } else if (stream == (uv_stream_t *)&program->pipe[SOURCE_STATUS]) {
            (void)uv_timer_start(&program->timer, on_left, PATIENCE_MS, 0);
        }
    } else if (stream == (uv_stream_t *)&program->pipe[SOURCE_OUTPUT]) {
        take_output(program, buf->base, (size_t)len);
    } else if (stream == (uv_stream_t *)&program->pipe[SOURCE_ERRORS]) {
        take_errors(program, buf->base, (size_t)len);
    } else {
        take_status(program, buf->base, (size_t)len);
    }
}

static void on_late(uv_timer_t *timer)
{
    struct program_run *program = timer->data;

    program->late = true;
    end_life(program);
}

// ---- the beginning ----

// Writes the text to a file without a name.
static int make_input(int *ret, const char *text, size_t len, struct err *err)
{
    int fd = memfd_create("kcast-request", MFD_CLOEXEC);

    if (fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory for a program's request");
    }
    int rc = file_write_fd(fd, text, len, "a program's request", err);
    if (rc == 0 && lseek(fd, 0, SEEK_SET) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "a program's request");
    }
    if (rc != 0) {
        close(fd);
        return rc;
    }
    *ret = fd;
    return 0;
}

int program_run_start(struct program_run **ret, uv_loop_t *loop, const char *command,
                      const struct program_bounds *bounds, const char *text, size_t len,
                      program_callback *callback, void *owner, struct err *err)
{
    int input = -1;
    int rc = make_input(&input, text, len, err);

    if (rc != 0) {
        return rc;
    }
    struct keeper keeper;
    rc = keeper_start(&keeper, command, input, err);
    close(input);
    if (rc != 0) {
        return rc;
    }
    struct program_run *program = xcalloc(1, sizeof(*program));
    program->bounds = *bounds;
    program->callback = callback;
    program->owner = owner;
    program->keeper = keeper;
    program->began_ns = uv_hrtime();
    strbuf_init(&program->output, SIZE_MAX);
    const int fd[SOURCES] = {keeper.output, keeper.errors, keeper.status};
    for (size_t i = 0; i < SOURCES; i++) {
        (void)uv_pipe_init(loop, &program->pipe[i], 0);
        program->pipe[i].data = program;
        if (uv_pipe_open(&program->pipe[i], fd[i]) != 0) {
            abort(); // it is a pipe that was just made
        }
        (void)uv_read_start((uv_stream_t *)&program->pipe[i], on_room, on_read);
    }
    (void)uv_timer_init(loop, &program->timer);
    program->timer.data = program;
    uv_update_time(loop); // the loop may have worked for long since it last looked
    (void)uv_timer_start(&program->timer, on_late, bounds->ms, 0);
    program->open = SOURCES;
    program->handles = SOURCES + 1;
    *ret = program;
    return 0;
}

void program_run_kill(struct program_run *program)
{
    struct pollfd report = {.fd = program->keeper.status, .events = POLLIN};

    end_life(program);
    // The keeper reports when everything is gone, and ends.
    if (poll(&report, 1, PATIENCE_MS) == 1) {
        (void)waitpid(program->keeper.pid, NULL, 0);
    }
    close_handles(program);
}
