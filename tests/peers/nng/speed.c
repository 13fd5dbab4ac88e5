// How many requests a second libnng carries between two processes: a REP socket whose contexts send
// back what they get, and a REQ socket with as many contexts as requests are to be under way. The
// callbacks of libnng do the work; nothing is handed over to another loop. tests/bench/bench_frames
// starts this beside the project's own frames.
//   speed tcp|tls+tcp BYTES IN-FLIGHT SECONDS [FOLDER]
//     FOLDER has server/ and caller/, each with ca.pem, cert.pem and key.pem; the server's
//     certificate is for "localhost"
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/tls/tls.h>
#include <nng/supplemental/util/platform.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTEXTS_MAX 256
#define FILE_MAX 65536

static void check(const char *what, int code)
{
    if (code != 0) {
        (void)fprintf(stderr, "speed: %s: %s\n", what, nng_strerror(code));
        _exit(1);
    }
}

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static char *read_file(const char *folder, const char *side, const char *name)
{
    char path[4096];
    char *text = calloc(1, FILE_MAX);

    (void)snprintf(path, sizeof(path), "%s/%s/%s", folder, side, name);
    FILE *file = fopen(path, "rb");
    if (!file || !text || fread(text, 1, FILE_MAX - 1, file) == 0) {
        check(path, NNG_ENOENT);
    } else {
        (void)fclose(file);
    }
    return text;
}

static nng_tls_config *tls_of(const char *folder, nng_tls_mode mode)
{
    const char *side = mode == NNG_TLS_MODE_SERVER ? "server" : "caller";
    nng_tls_config *tls;

    check("TLS", nng_tls_config_alloc(&tls, mode));
    check("TLS", nng_tls_config_ca_chain(tls, read_file(folder, side, "ca.pem"), NULL));
    check("TLS", nng_tls_config_own_cert(tls, read_file(folder, side, "cert.pem"),
                                         read_file(folder, side, "key.pem"), NULL));
    check("TLS", nng_tls_config_auth_mode(tls, NNG_TLS_AUTH_MODE_REQUIRED));
    if (mode == NNG_TLS_MODE_CLIENT) {
        check("TLS", nng_tls_config_server_name(tls, "localhost"));
    }
    return tls;
}

// One context and what it does: the server receives and sends back, the client sends and receives.
struct work {
    nng_aio *aio;
    nng_ctx context;
    bool sending;
};

// --- the server

static void on_served(void *owner)
{
    struct work *work = owner;

    if (nng_aio_result(work->aio) != 0) {
        _exit(0); // the client has gone
    }
    work->sending = !work->sending;
    if (work->sending) { // a message has come, and goes back as it is
        nng_ctx_send(work->context, work->aio);
    } else {
        nng_ctx_recv(work->context, work->aio);
    }
}

static void serve(const char *scheme, const char *folder, int contexts, int out)
{
    static struct work work[CONTEXTS_MAX];
    nng_socket socket;
    nng_listener listener;
    char url[64];
    nng_sockaddr at;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:0", scheme);
    check("REP", nng_rep0_open(&socket));
    check("REP", nng_listener_create(&listener, socket, url));
    if (folder) {
        check("TLS", nng_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG,
                                          tls_of(folder, NNG_TLS_MODE_SERVER)));
    }
    check("REP", nng_listener_start(listener, 0));
    check("REP", nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &at));
    for (int i = 0; i < contexts; i++) {
        check("REP", nng_ctx_open(&work[i].context, socket));
        check("REP", nng_aio_alloc(&work[i].aio, on_served, &work[i]));
        nng_ctx_recv(work[i].context, work[i].aio);
    }
    if (write(out, &at.s_in.sa_port, sizeof(at.s_in.sa_port)) < 0) {
        _exit(1);
    }
    for (;;) {
        (void)pause();
    }
}

// --- the client

static atomic_ulong answered;
static double stop_s;
static size_t message_len;

static void send_one(struct work *work)
{
    nng_msg *message;

    check("a message", nng_msg_alloc(&message, message_len));
    memset(nng_msg_body(message), 'x', message_len);
    nng_aio_set_msg(work->aio, message);
    work->sending = true;
    nng_ctx_send(work->context, work->aio);
}

static void on_called(void *owner)
{
    struct work *work = owner;

    check("a request", nng_aio_result(work->aio));
    if (work->sending) {
        work->sending = false;
        nng_ctx_recv(work->context, work->aio);
        return;
    }
    nng_msg_free(nng_aio_get_msg(work->aio));
    (void)atomic_fetch_add(&answered, 1);
    if (now_s() < stop_s) {
        send_one(work);
    }
}

int main(int argc, char **argv)
{
    static struct work work[CONTEXTS_MAX];
    const char *folder = argc > 5 ? argv[5] : NULL;
    int flight = argc > 4 ? (int)strtol(argv[3], NULL, 10) : 0;
    int pipes[2];

    if (flight < 1 || flight > CONTEXTS_MAX || pipe(pipes) != 0) {
        (void)fprintf(stderr, "usage: speed tcp|tls+tcp BYTES IN-FLIGHT SECONDS [FOLDER]\n");
        return 2;
    }
    message_len = (size_t)strtoul(argv[2], NULL, 10);
    pid_t server = fork(); // before libnng has any thread here
    if (server == 0) {
        serve(argv[1], folder, flight, pipes[1]);
    }
    uint16_t port;
    if (read(pipes[0], &port, sizeof(port)) != sizeof(port)) {
        return 1;
    }
    char url[64];
    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u", argv[1],
                   (unsigned)(port >> 8 | (port & 0xff) << 8));
    nng_socket socket;
    nng_dialer dialer;
    check("REQ", nng_req0_open(&socket));
    check("REQ", nng_dialer_create(&dialer, socket, url));
    if (folder) {
        check("TLS",
              nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, tls_of(folder, NNG_TLS_MODE_CLIENT)));
    }
    check(url, nng_dialer_start(dialer, 0));
    double start_s = now_s();
    double seconds = strtod(argv[4], NULL);
    stop_s = start_s + seconds;
    for (int i = 0; i < flight; i++) {
        check("REQ", nng_ctx_open(&work[i].context, socket));
        check("REQ", nng_aio_alloc(&work[i].aio, on_called, &work[i]));
        send_one(&work[i]);
    }
    while (now_s() < stop_s) {
        nng_msleep(5);
    }
    (void)printf("%.0f\n", (double)atomic_load(&answered) / (now_s() - start_s));
    (void)fflush(stdout);
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    _exit(0); // without nng_close, which may hang
}
