// Whether nng_close of libnng comes back while replies arrive: a REQ socket with eight contexts, to
// which a REP socket of another process answers at once, is closed in the middle, again and again,
// aios first. Prints how many rounds went well before one did not come back within ten seconds.
//   close tcp|tls+tcp ROUNDS [FOLDER]
//     FOLDER as for speed.c
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/tls/tls.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTEXTS 8
#define ANSWERS 50 // before a socket is closed
#define FILE_MAX 65536
#define HANGS_S 10 // seconds after which a round counts as hanging

static sem_t answers; // that have come
static char report[64];
static size_t report_len;

static void check(const char *what, int code)
{
    if (code != 0) {
        (void)fprintf(stderr, "close: %s: %s\n", what, nng_strerror(code));
        _exit(1);
    }
}

static void set_tls(const char *folder, const char *side, nng_tls_mode mode, nng_tls_config **ret)
{
    static const char *const names[] = {"ca.pem", "cert.pem", "key.pem"};
    static char text[3][FILE_MAX];

    for (int i = 0; i < 3; i++) {
        char path[4096];
        (void)snprintf(path, sizeof(path), "%s/%s/%s", folder, side, names[i]);
        FILE *file = fopen(path, "rb");
        check(path, file && fread(text[i], 1, FILE_MAX - 1, file) > 0 ? 0 : NNG_ENOENT);
        (void)fclose(file);
    }
    check("TLS", nng_tls_config_alloc(ret, mode));
    check("TLS", nng_tls_config_ca_chain(*ret, text[0], NULL));
    check("TLS", nng_tls_config_own_cert(*ret, text[1], text[2], NULL));
    check("TLS", nng_tls_config_auth_mode(*ret, NNG_TLS_AUTH_MODE_REQUIRED));
}

static void serve(const char *scheme, const char *folder, int out)
{
    nng_socket socket;
    nng_listener listener;
    nng_sockaddr at;
    char url[64];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:0", scheme);
    check("REP", nng_rep0_open(&socket));
    check("REP", nng_listener_create(&listener, socket, url));
    if (folder) {
        nng_tls_config *tls;
        set_tls(folder, "server", NNG_TLS_MODE_SERVER, &tls);
        check("TLS", nng_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, tls));
    }
    check("REP", nng_listener_start(listener, 0));
    check("REP", nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &at));
    if (write(out, &at.s_in.sa_port, sizeof(at.s_in.sa_port)) < 0) {
        _exit(1);
    }
    for (nng_msg *message;;) {
        if (nng_recvmsg(socket, &message, 0) == 0 && nng_sendmsg(socket, message, 0) != 0) {
            nng_msg_free(message);
        }
    }
}

// One of the contexts: it sends, receives and sends again.
struct work {
    nng_aio *aio;
    nng_ctx context;
    bool sending;
};

static void send_one(struct work *work)
{
    nng_msg *message;

    check("a message", nng_msg_alloc(&message, 64));
    nng_aio_set_msg(work->aio, message);
    work->sending = true;
    nng_ctx_send(work->context, work->aio);
}

static void on_called(void *owner)
{
    struct work *work = owner;

    if (nng_aio_result(work->aio) != 0) {
        if (work->sending) {
            nng_msg_free(nng_aio_get_msg(work->aio));
        }
        return; // it is being stopped
    }
    if (work->sending) {
        work->sending = false;
        nng_ctx_recv(work->context, work->aio);
        return;
    }
    nng_msg_free(nng_aio_get_msg(work->aio));
    (void)sem_post(&answers);
    send_one(work);
}

static void run_round(const char *url, nng_tls_config *tls)
{
    static struct work work[CONTEXTS];
    nng_socket socket;
    nng_dialer dialer;

    check("REQ", nng_req0_open(&socket));
    check("REQ", nng_dialer_create(&dialer, socket, url));
    if (tls) {
        check("TLS", nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, tls));
    }
    check(url, nng_dialer_start(dialer, 0));
    for (int i = 0; i < CONTEXTS; i++) {
        check("REQ", nng_ctx_open(&work[i].context, socket));
        check("REQ", nng_aio_alloc(&work[i].aio, on_called, &work[i]));
        send_one(&work[i]);
    }
    for (int i = 0; i < ANSWERS; i++) { // others are under way then
        (void)sem_wait(&answers);
    }
    for (int i = 0; i < CONTEXTS; i++) {
        nng_aio_stop(work[i].aio);
    }
    for (int i = 0; i < CONTEXTS; i++) {
        (void)nng_ctx_close(work[i].context);
        nng_aio_free(work[i].aio);
    }
    (void)nng_close(socket);
}

static void on_alarm(int number)
{
    (void)number;
    (void)!write(STDOUT_FILENO, report, report_len);
    _exit(3);
}

int main(int argc, char **argv)
{
    int pipes[2];
    uint16_t port;
    nng_tls_config *tls = NULL;

    if (argc < 3 || pipe(pipes) != 0) {
        (void)fprintf(stderr, "usage: close tcp|tls+tcp ROUNDS [FOLDER]\n");
        return 2;
    }
    if (fork() == 0) {
        serve(argv[1], argc > 3 ? argv[3] : NULL, pipes[1]);
    }
    if (read(pipes[0], &port, sizeof(port)) != sizeof(port)) {
        return 1;
    }
    if (argc > 3) {
        set_tls(argv[3], "caller", NNG_TLS_MODE_CLIENT, &tls);
        check("TLS", nng_tls_config_server_name(tls, "localhost"));
    }
    char url[64];
    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u", argv[1],
                   (unsigned)(port >> 8 | (port & 0xff) << 8));
    (void)signal(SIGALRM, on_alarm);
    (void)sem_init(&answers, 0, 0);
    long rounds = strtol(argv[2], NULL, 10);
    for (long round = 0; round < rounds; round++) {
        int len = snprintf(report, sizeof(report), "hangs in round %ld\n", round);
        report_len = (size_t)len;
        (void)alarm(HANGS_S);
        run_round(url, tls);
    }
    (void)printf("%ld rounds without a hang\n", rounds);
    (void)fflush(stdout);
    _exit(0);
}
