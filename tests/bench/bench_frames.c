// How many frames go there and back in a second between two processes on loopback, by
// net/rpc/stream alone and by the service and remote that programs use (a packed message each way),
// in the clear and by TLS; and how many requests libnng carries meanwhile
// (tests/peers/nng/speed.c), in the same turns. Both sides share the machine, so only ratios count:
// those of medians over the turns.
//   bench_frames [SECONDS [TURNS [BYTES IN-FLIGHT]]]
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "net/rpc/remote.h"
#include "net/rpc/service.h"
#include "net/rpc/stream.h"
#include "net/tls/authority.h"
#include "tests/bench/samples.h"
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TURNS_MAX 99
#define DAY 86400

enum who { STREAMS, CALLS, LIBNNG, WHO_COUNT };

struct load {
    bool encrypted;
    size_t len; // bytes of a message, there and back
    size_t flight;
    double seconds;
    const char *dir; // of certificates
    // What the two ends of one run share.
    uv_loop_t loop;
    struct stream *stream;
    struct remote *remote;
    unsigned char *data;
    uint64_t start_ns;
    uint64_t stop_ns;
    uint64_t answered;
    size_t open;
};

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        die(err);
    }
}

static struct tls *make_tls(const struct load *load, enum tls_side side)
{
    const char *name = side == TLS_SERVER ? "server" : "caller";
    char *ca = xasprintf("%s/%s/ca.pem", load->dir, name);
    char *cert = xasprintf("%s/%s/cert.pem", load->dir, name);
    char *key = xasprintf("%s/%s/key.pem", load->dir, name);
    const struct tls_files files = {.ca = ca, .cert = cert, .key = key};
    struct tls *tls = NULL;
    struct err err = ERR_INIT;

    must(tls_create(&tls, side, &files, &err), &err);
    free(ca);
    free(cert);
    free(key);
    return tls;
}

// --- streams: the server sends each frame back

static bool on_echo(void *owner, const struct frames_view *frame)
{
    struct load *load = owner;
    struct strbuf out = STRBUF_INIT;

    frame_begin(&out, frame->header, frame->header_len);
    strbuf_add(&out, frame->data, frame->len);
    frame_end(&out);
    stream_send(load->stream, &out);
    return true;
}

static void on_server_end(void *owner, const struct err *why)
{
    (void)owner;
    (void)why;
    _exit(0);
}

static void serve_stream(struct load *load, int listening)
{
    struct stream_config config = {.message_max = 64 << 20,
                                   .tls = load->encrypted ? make_tls(load, TLS_SERVER) : NULL,
                                   .on_frame = on_echo,
                                   .on_end = on_server_end,
                                   .owner = load};
    struct err err = ERR_INIT;

    must(stream_accept(&load->stream, &load->loop, accept(listening, NULL, NULL), &config, &err),
         &err);
}

static void send_frame(struct load *load)
{
    struct strbuf out = STRBUF_INIT;

    frame_begin_request(&out, (uint32_t)++load->open);
    strbuf_add(&out, load->data, load->len);
    frame_end(&out);
    stream_send(load->stream, &out);
}

static void on_greeting(void *owner)
{
    struct load *load = owner;

    load->start_ns = uv_hrtime();
    load->stop_ns = load->start_ns + (uint64_t)(load->seconds * NS_PER_S);
    for (size_t i = 0; i < load->flight; i++) {
        send_frame(load);
    }
}

static bool on_answered_frame(void *owner, const struct frames_view *frame)
{
    struct load *load = owner;

    (void)frame;
    load->answered++;
    if (uv_hrtime() < load->stop_ns) {
        send_frame(load);
    } else {
        uv_stop(&load->loop);
    }
    return true;
}

static void on_client_end(void *owner, const struct err *why)
{
    (void)owner;
    die(why);
}

static void call_stream(struct load *load, const struct sockaddr_in *to)
{
    const struct stream_config config = {.message_max = 64 << 20,
                                         .tls = load->encrypted ? make_tls(load, TLS_CALLER) : NULL,
                                         .tls_host = "localhost",
                                         .on_greeting = on_greeting,
                                         .on_frame = on_answered_frame,
                                         .on_end = on_client_end,
                                         .owner = load};

    load->stream = stream_connect(&load->loop, (const struct sockaddr *)to, &config);
}

// --- service and remote: BLOB_PUT, answered by the same blob

static void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    struct blob_put put;

    (void)owner;
    if (request->op == OP_HELLO) {
        exchange_hello(exchange, request, "kcastd", NULL, 0, 20000, NULL);
    } else if (exchange_read_body(exchange, request, &blob_put_message, &put)) {
        exchange_reply(exchange, &blob_put_message, &put);
        message_clear(&blob_put_message, &put);
    }
}

// Writes the port to out when it listens.
static void serve_calls(struct load *load, int out)
{
    char *path[] = {xasprintf("%s/server/ca.pem", load->dir),
                    xasprintf("%s/server/cert.pem", load->dir),
                    xasprintf("%s/server/key.pem", load->dir), xasprintf("%s/tokens", load->dir)};
    struct service_config config = {.url =
                                        load->encrypted ? "tls://127.0.0.1:0" : "tcp://127.0.0.1:0",
                                    .exchanges_max = 1024,
                                    .parked_max = 512,
                                    .message_max = 16 << 20,
                                    .on_request = on_request};
    struct service *service;
    struct err err = ERR_INIT;

    if (load->encrypted) {
        config.files = (struct identity_files){path[0], path[1], path[2], path[3]};
    }
    must(service_create(&service, &load->loop, &config, &err), &err);
    uint16_t port = htons((uint16_t)strtoul(strrchr(service_url(service), ':') + 1, NULL, 10));
    if (write(out, &port, sizeof(port)) != sizeof(port)) {
        _exit(1);
    }
}

static void call_one(struct load *load);

static void on_answered(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct load *load = owner;

    (void)retry_after_ms;
    (void)reply;
    if (error) {
        die(error);
    }
    load->answered++;
    if (uv_hrtime() < load->stop_ns) {
        call_one(load);
    } else {
        uv_stop(&load->loop);
    }
}

static void call_one(struct load *load)
{
    struct blob_put put = {.data = {.data = load->data, .len = load->len}};

    memset(&put.digest, 1, sizeof(put.digest));
    remote_call(load->remote, OP_BLOB_PUT, &blob_put_message, &put, &blob_put_message, 60000,
                on_answered, load);
}

static void begin_calls(struct load *load, const struct sockaddr_in *to)
{
    char url[64];
    struct hello_reply hello;
    struct err err = ERR_INIT;

    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u", load->encrypted ? "tls" : "tcp",
                   ntohs(to->sin_port));
    if (load->encrypted) {
        char *path = xasprintf("%s/token", load->dir);
        struct bytes token;

        must(file_read(&token, path, 4096, &err), &err);
        must(remote_create_tls(&load->remote, &load->loop, url, make_tls(load, TLS_CALLER),
                               (char *)token.data, &err),
             &err);
        bytes_clear(&token);
        free(path);
    } else {
        must(remote_create(&load->remote, &load->loop, url, &err), &err);
    }
    must(remote_hello_sync(load->remote, "kcastd", &hello, &err), &err);
    message_clear(&hello_reply_message, &hello);
    load->start_ns = uv_hrtime();
    load->stop_ns = load->start_ns + (uint64_t)(load->seconds * NS_PER_S);
    for (size_t i = 0; i < load->flight; i++) {
        call_one(load);
    }
}

// --- one run

static int listen_here(struct sockaddr_in *ret)
{
    socklen_t len = sizeof(*ret);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || bind(fd, (const struct sockaddr *)ret, sizeof(*ret)) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)ret, &len) != 0) {
        perror("bench_frames: a socket");
        exit(1);
    }
    return fd;
}

static void __attribute__((noreturn)) serve(struct load *load, enum who who, int listening, int out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)uv_loop_init(&load->loop);
    if (who == STREAMS) {
        serve_stream(load, listening);
    } else {
        serve_calls(load, out);
    }
    (void)uv_run(&load->loop, UV_RUN_DEFAULT);
    _exit(0);
}

static void __attribute__((noreturn))
call(struct load *load, enum who who, const struct sockaddr_in *to, int out)
{
    (void)uv_loop_init(&load->loop);
    load->data = xcalloc(1, load->len);
    memset(load->data, 'x', load->len);
    if (who == STREAMS) {
        call_stream(load, to);
    } else {
        begin_calls(load, to);
    }
    (void)uv_run(&load->loop, UV_RUN_DEFAULT);
    double rate = (double)load->answered * NS_PER_S / (double)(uv_hrtime() - load->start_ns);
    _exit(write(out, &rate, sizeof(rate)) == sizeof(rate) ? 0 : 1);
}

// Both ends of ours are processes of their own. Returns requests per second.
static double run_ours(struct load *load, enum who who)
{
    struct sockaddr_in to;
    int listening = listen_here(&to);
    int pipes[2];
    double rate = 0;

    if (pipe(pipes) != 0) {
        return 0;
    }
    pid_t server = fork();
    if (server == 0) {
        serve(load, who, listening, pipes[1]);
    }
    if (who == CALLS && read(pipes[0], &to.sin_port, sizeof(to.sin_port)) < 0) {
        return 0;
    }
    pid_t client = fork();
    if (client == 0) {
        call(load, who, &to, pipes[1]);
    }
    close(pipes[1]);
    (void)waitpid(client, NULL, 0);
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    if (read(pipes[0], &rate, sizeof(rate)) != sizeof(rate)) {
        rate = 0;
    }
    close(pipes[0]);
    close(listening);
    return rate;
}

static double run_libnng(const struct load *load, const char *speed)
{
    char number[3][32];
    int pipes[2];
    double rate = 0;

    (void)snprintf(number[0], sizeof(number[0]), "%zu", load->len);
    (void)snprintf(number[1], sizeof(number[1]), "%zu", load->flight);
    (void)snprintf(number[2], sizeof(number[2]), "%g", load->seconds);
    if (pipe(pipes) != 0) {
        return 0;
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(pipes[1], STDOUT_FILENO);
        (void)execl(speed, speed, load->encrypted ? "tls+tcp" : "tcp", number[0], number[1],
                    number[2], load->encrypted ? load->dir : NULL, NULL);
        _exit(1);
    }
    close(pipes[1]);
    FILE *out = fdopen(pipes[0], "r");
    if (!out || fscanf(out, "%lf", &rate) != 1) {
        rate = 0;
    }
    if (out) {
        (void)fclose(out);
    }
    (void)waitpid(pid, NULL, 0);
    return rate;
}

// --- certificates

static char *make_certificates(void)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1"};
    struct authority *authority;
    bool made;
    char *dir = NULL;
    struct err err = ERR_INIT;

    must(file_make_temp_dir(&dir, "kcast-frames", &err), &err);
    must(authority_open(&authority, dir, time(NULL), &made, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        const struct certificate_spec spec = {.name = i == 0 ? "server" : "caller",
                                              .hosts = i == 0 ? hosts : NULL,
                                              .host_count = i == 0 ? ARRAY_LEN(hosts) : 0,
                                              .from_s = time(NULL) - DAY,
                                              .to_s = time(NULL) + DAY};
        char *folder = xasprintf("%s/%s", dir, spec.name);

        must(authority_issue(authority, folder, &spec, &made, &err), &err);
        free(folder);
    }
    authority_free(authority);
    char *text = NULL;
    struct tokens *tokens = tokens_create();
    must(tokens_add(tokens, "bench", CALLER_SUBMIT, time(NULL), 0, &text, &err), &err);
    struct strbuf lines = STRBUF_INIT;
    tokens_write(tokens, &lines);
    char *path = xasprintf("%s/tokens", dir);
    must(file_replace(path, lines.data, lines.len, false, &err), &err);
    (void)chmod(path, 0600);
    free(path);
    path = xasprintf("%s/token", dir);
    must(file_replace(path, text, strlen(text), false, &err), &err);
    free(path);
    free(text);
    tokens_free(tokens);
    strbuf_release(&lines);
    return dir;
}

// --- all of them

// Seconds of processor time of all processes that have ended.
static double processor_s(void)
{
    struct rusage used;

    (void)getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void print_row(const char *name, double values[WHO_COUNT][TURNS_MAX], size_t turns)
{
    double median[WHO_COUNT];

    for (enum who who = 0; who < WHO_COUNT; who++) {
        median[who] = stats_median(values[who], turns);
    }
    printf("   %-26s streams %9.1f  calls %9.1f  libnng %9.1f   streams/libnng %6.2f  "
           "calls/libnng %6.2f\n",
           name, median[STREAMS], median[CALLS], median[LIBNNG], median[STREAMS] / median[LIBNNG],
           median[CALLS] / median[LIBNNG]);
}

static void compare(const struct load *load, const char *speed, size_t turns)
{
    double rates[WHO_COUNT][TURNS_MAX];
    double costs[WHO_COUNT][TURNS_MAX];

    for (size_t turn = 0; turn < turns; turn++) {
        for (enum who who = 0; who < WHO_COUNT; who++) {
            struct load one = *load;
            double before_s = processor_s();
            double rate = who == LIBNNG ? run_libnng(&one, speed) : run_ours(&one, who);

            rates[who][turn] = rate;
            costs[who][turn] = (processor_s() - before_s) / (rate * load->seconds) * 1e6;
        }
    }
    printf("%s, %zu bytes, %zu under way\n", load->encrypted ? "TLS" : "TCP", load->len,
           load->flight);
    print_row("a second", rates, turns);
    print_row("us of processor time each", costs, turns);
}

int main(int argc, char **argv)
{
    static struct {
        uint64_t len;
        uint64_t flight;
    } shape[] = {{64, 1}, {64, 32}, {200000, 1}, {200000, 32}, {4000000, 4}};
    size_t shapes = argc > 4 ? 1 : ARRAY_LEN(shape);
    double seconds = 1;
    uint64_t turns = 5;
    struct err err = ERR_INIT;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    mem_reuse_buffers(); // as the programs do
    if ((argc > 1 && parse_f64(&seconds, argv[1], 0.01, 1000, "SECONDS", &err) != 0) ||
        (argc > 2 && parse_u64(&turns, argv[2], 1, TURNS_MAX, "TURNS", &err) != 0) ||
        (argc > 4 && (parse_u64(&shape[0].len, argv[3], 1, 16 << 20, "BYTES", &err) != 0 ||
                      parse_u64(&shape[0].flight, argv[4], 1, 256, "IN-FLIGHT", &err) != 0))) {
        die(&err);
    }
    // Beside the folder of this program.
    char *speed = xasprintf("%.*s/../tests/peers/nng/speed",
                            strrchr(argv[0], '/') ? (int)(strrchr(argv[0], '/') - argv[0]) : 1,
                            strrchr(argv[0], '/') ? argv[0] : ".");
    if (access(speed, X_OK) != 0) {
        printf("%s is not there, so nothing is compared with libnng\n", speed);
    }
    char *dir = make_certificates();
    for (size_t i = 0; i < 2 * shapes; i++) {
        struct load load = {.encrypted = i >= shapes,
                            .len = shape[i % shapes].len,
                            .flight = shape[i % shapes].flight,
                            .seconds = seconds,
                            .dir = dir};

        compare(&load, speed, (size_t)turns);
    }
    must(file_remove_tree(dir, &err), &err);
    free(dir);
    free(speed);
    return 0;
}
