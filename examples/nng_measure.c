// Measures a candidate by a kcastd, and asks a kcast-worker for a forecast of it first, with
// nothing of kernelcast's own: libnng carries the requests, msgpack-c packs them. docs/protocol.md
// has the operations and the keys of their fields.
//   cc -o nng_measure examples/nng_measure.c -lnng -lmsgpackc -lmbedcrypto   (Debian 13: -lmsgpack-c)
//   nng_measure [OPTION]... DAEMON PROBLEM CANDIDATE.c
//     DAEMON       tcp://127.0.0.1:7410 or tls+tcp://HOST:7410
//     PROBLEM      a folder with problem.json, reference.c and baseline.c
//     -w WORKER    its url
//     -c FOLDER    for tls+tcp://: ca.pem, cert.pem and key.pem, as `kcast tls init` makes them
//     -t FILE      for tls+tcp://: the token, as `kcast token add` prints it
//     -n NAME      that the servers' certificates are for; the mbedTLS that libnng uses compares names
//                  alone, no addresses
#include <errno.h>
#include <math.h>
#include <mbedtls/md.h>
#include <msgpack.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/tls/tls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOB_PUT = 2, SUBMIT = 4, WAIT = 5, STATUS = 6, ACK = 8, FORECAST = 32 }; // operations
enum { COMPILE = 1, MEASURE = 2 };                                               // kinds of jobs
enum { WAIT_MS = 20000 };     // the longest WAIT that kcastd takes
enum { DEADLINE_MS = 30000 }; // of each request; below the minute after which a REQ socket resends
enum { DIGEST_LEN = 32, BLOBS = 4 }; // problem, reference, baseline, candidate

struct server {
    nng_socket socket;
    const char *token; // NULL: none
};

struct blob {
    char *data;
    size_t len;
    unsigned char digest[DIGEST_LEN];
};

static void __attribute__((noreturn)) die(const char *what, const char *why)
{
    (void)fprintf(stderr, "nng_measure: %s: %s\n", what, why);
    exit(1);
}

static void check(const char *what, int code)
{
    if (code != 0) {
        die(what, nng_strerror(code));
    }
}

// --- files

static struct blob read_file(const char *folder, const char *name)
{
    struct blob blob = {0};
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s%s%s", folder ? folder : "", folder ? "/" : "", name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        die(path, strerror(errno));
    }
    blob.data = calloc(1, (4 << 20) + 1); // more than kcastd takes
    blob.len = blob.data ? fread(blob.data, 1, 4 << 20, file) : 0;
    (void)fclose(file);
    if (mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), (unsigned char *)blob.data,
                   blob.len, blob.digest) != 0) {
        die(path, "its SHA-256 cannot be computed");
    }
    return blob;
}

// --- a request and its reply

// Returns the value of a key in a map, or NULL.
static const msgpack_object *get(const msgpack_object *map, unsigned key)
{
    for (size_t i = 0; map && map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size; i++) {
        if (map->via.map.ptr[i].key.via.u64 == key) {
            return &map->via.map.ptr[i].val;
        }
    }
    return NULL;
}

static const msgpack_object *first(const msgpack_object *array)
{
    return array && array->type == MSGPACK_OBJECT_ARRAY && array->via.array.size > 0
               ? array->via.array.ptr
               : NULL;
}

static double number(const msgpack_object *object)
{
    return !object                                           ? NAN
           : object->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? (double)object->via.u64
                                                             : object->via.f64;
}

static void pack_text(msgpack_packer *to, const char *text)
{
    (void)msgpack_pack_str(to, strlen(text));
    (void)msgpack_pack_str_body(to, text, strlen(text));
}

static void pack_bytes(msgpack_packer *to, const void *data, size_t len)
{
    (void)msgpack_pack_bin(to, len);
    (void)msgpack_pack_bin_body(to, data, len);
}

// Sends a request, waits for its reply and unpacks the body. What is unpacked is never freed.
static const msgpack_object *call(struct server *server, int op, msgpack_sbuffer *body)
{
    msgpack_sbuffer message;
    msgpack_packer to;

    msgpack_sbuffer_init(&message);
    msgpack_packer_init(&to, &message, msgpack_sbuffer_write);
    (void)msgpack_pack_map(&to, server->token ? 5 : 4);
    (void)msgpack_pack_int(&to, 1); // version
    (void)msgpack_pack_int(&to, 1);
    (void)msgpack_pack_int(&to, 2); // op
    (void)msgpack_pack_int(&to, op);
    (void)msgpack_pack_int(&to, 4); // deadline_ms
    (void)msgpack_pack_int(&to, DEADLINE_MS);
    if (server->token) { // nng makes its connection again by itself, so each request has the token
        (void)msgpack_pack_int(&to, 5);
        pack_text(&to, server->token);
    }
    (void)msgpack_pack_int(&to, 6); // body
    pack_bytes(&to, body->data, body->size);
    check("the request", nng_send(server->socket, message.data, message.size, 0));
    msgpack_sbuffer_destroy(&message);
    msgpack_sbuffer_destroy(body);

    msgpack_unpacked *reply = calloc(2, sizeof(*reply));
    char *data;
    size_t len;
    check("the reply", nng_recv(server->socket, &data, &len, NNG_FLAG_ALLOC));
    if (!reply || msgpack_unpack_next(&reply[0], data, len, NULL) != MSGPACK_UNPACK_SUCCESS) {
        die("the reply", "it is no msgpack");
    }
    const msgpack_object *error = get(&reply[0].data, 3);
    if (error) {
        const msgpack_object *text = get(&reply[0].data, 4);

        (void)fprintf(stderr, "nng_measure: %.*s: %.*s\n", (int)error->via.str.size,
                      error->via.str.ptr, text ? (int)text->via.str.size : 0,
                      text ? text->via.str.ptr : "");
        exit(1);
    }
    const msgpack_object *packed = get(&reply[0].data, 7);
    if (packed) {
        (void)msgpack_unpack_next(&reply[1], packed->via.bin.ptr, packed->via.bin.size, NULL);
    }
    return &reply[1].data;
}

// Begins the body of a request: a map of so many fields.
static void begin(msgpack_sbuffer *body, msgpack_packer *to, size_t fields)
{
    msgpack_sbuffer_init(body);
    msgpack_packer_init(to, body, msgpack_sbuffer_write);
    (void)msgpack_pack_map(to, fields);
}

static void key(msgpack_packer *to, int number_of_field)
{
    (void)msgpack_pack_int(to, number_of_field);
}

// --- the operations

static void put_blob(struct server *daemon, const struct blob *blob)
{
    msgpack_sbuffer body;
    msgpack_packer to;

    begin(&body, &to, 2);
    key(&to, 1);
    pack_bytes(&to, blob->digest, DIGEST_LEN);
    key(&to, 2);
    pack_bytes(&to, blob->data, blob->len);
    (void)call(daemon, BLOB_PUT, &body);
}

// Asks for a job and waits until it has ended. Returns what is known of it, a job_info.
static const msgpack_object *run_job(struct server *daemon, int kind, const struct blob *blobs)
{
    msgpack_sbuffer body;
    msgpack_packer to;
    char name[64];

    (void)snprintf(name, sizeof(name), "%ld-%d-%d", (long)time(NULL), (int)getpid(), kind);
    begin(&body, &to, 3);
    key(&to, 1); // search
    pack_text(&to, "nng-measure");
    key(&to, 2); // key: asked again under the same one, this is the same job
    pack_text(&to, name);
    key(&to, 3); // spec
    (void)msgpack_pack_map(&to, 1 + BLOBS);
    key(&to, 1);
    (void)msgpack_pack_int(&to, kind);
    for (int i = 0; i < BLOBS; i++) {
        key(&to, 2 + i);
        pack_bytes(&to, blobs[i].digest, DIGEST_LEN);
    }
    uint64_t job = get(call(daemon, SUBMIT, &body), 1)->via.u64;
    const msgpack_object *info = NULL;
    while (!info) { // one WAIT ends after WAIT_MS, with no job when it has not ended by then
        begin(&body, &to, 2);
        key(&to, 1);
        (void)msgpack_pack_array(&to, 1);
        (void)msgpack_pack_uint64(&to, job);
        key(&to, 2);
        (void)msgpack_pack_int(&to, WAIT_MS);
        info = first(get(call(daemon, WAIT, &body), 1));
    }
    begin(&body, &to, 1); // the result has arrived, and kcastd may forget it
    key(&to, 1);
    (void)msgpack_pack_array(&to, 1);
    (void)msgpack_pack_uint64(&to, job);
    (void)call(daemon, ACK, &body);
    return info;
}

// Asks what the worker expects of a candidate with these features.
static void forecast(struct server *worker, const msgpack_object *device_class,
                     const msgpack_object *features)
{
    msgpack_sbuffer body;
    msgpack_packer to;

    begin(&body, &to, 3);
    key(&to, 1);
    pack_text(&to, "problem");
    key(&to, 3);
    (void)msgpack_pack_object(&to, *device_class);
    key(&to, 7);
    (void)msgpack_pack_array(&to, 1);
    (void)msgpack_pack_map(&to, features ? 2 : 1);
    key(&to, 1); // id
    (void)msgpack_pack_int(&to, 1);
    if (features) {
        key(&to, 3);
        (void)msgpack_pack_object(&to, *features);
    }
    const msgpack_object *answer = first(get(call(worker, FORECAST, &body), 1));
    (void)printf("forecast: correct with probability %.2f\n", number(get(answer, 2)));
}

static int report(const msgpack_object *info)
{
    const msgpack_object *result = get(info, 8);
    const msgpack_object *speedup = get(result, 3);
    const msgpack_object *why = get(result ? result : info, result ? 2 : 7);

    if (speedup) {
        (void)printf("speedup %.3f (%.3f to %.3f)\n", exp2(number(get(speedup, 1))),
                     exp2(number(get(speedup, 2))), exp2(number(get(speedup, 3))));
        return 0;
    }
    (void)printf("no speedup: %.*s\n", why ? (int)why->via.str.size : 0,
                 why ? why->via.str.ptr : "");
    return 2;
}

// --- connections

static struct server connect_to(const char *url, const char *folder, const char *name,
                                const char *token)
{
    struct server server = {.token = token};
    nng_dialer dialer;

    check("a socket", nng_req0_open(&server.socket));
    check("a socket", nng_socket_set_ms(server.socket, NNG_OPT_RECVTIMEO, 2 * DEADLINE_MS));
    check(url, nng_dialer_create(&dialer, server.socket, url));
    if (folder) {
        nng_tls_config *tls;

        check("TLS", nng_tls_config_alloc(&tls, NNG_TLS_MODE_CLIENT));
        check("TLS", nng_tls_config_ca_chain(tls, read_file(folder, "ca.pem").data, NULL));
        check("TLS", nng_tls_config_own_cert(tls, read_file(folder, "cert.pem").data,
                                             read_file(folder, "key.pem").data, NULL));
        check("TLS", nng_tls_config_server_name(tls, name ? name : ""));
        check("TLS", nng_tls_config_auth_mode(tls, NNG_TLS_AUTH_MODE_REQUIRED));
        check("TLS", nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, tls));
    }
    check(url, nng_dialer_start(dialer, 0));
    return server;
}

int main(int argc, char **argv)
{
    const char *worker_url = NULL, *folder = NULL, *name = NULL;
    char *token = NULL;

    for (int option; (option = getopt(argc, argv, "w:c:n:t:")) != -1;) {
        if (option == 'w') {
            worker_url = optarg;
        } else if (option == 'c') {
            folder = optarg;
        } else if (option == 'n') {
            name = optarg;
        } else if (option == 't') {
            token = read_file(NULL, optarg).data;
            token[strcspn(token, "\n")] = '\0';
        } else {
            return 2;
        }
    }
    if (argc - optind != 3) {
        die("usage",
            "nng_measure [-w WORKER] [-c FOLDER -n NAME -t FILE] DAEMON PROBLEM CANDIDATE.c");
    }
    struct server daemon = connect_to(argv[optind], folder, name, token);
    const char *problem = argv[optind + 1];
    struct blob blobs[BLOBS] = {read_file(problem, "problem.json"),
                                read_file(problem, "reference.c"), read_file(problem, "baseline.c"),
                                read_file(NULL, argv[optind + 2])};
    for (size_t i = 0; i < BLOBS; i++) {
        put_blob(&daemon, &blobs[i]);
    }
    if (worker_url) {
        struct server worker = connect_to(worker_url, folder, name, token);
        msgpack_sbuffer nothing;
        msgpack_packer to;

        begin(&nothing, &to, 0);
        const msgpack_object *device = first(get(call(&daemon, STATUS, &nothing), 1));
        forecast(&worker, get(device, 2), get(get(run_job(&daemon, COMPILE, blobs), 9), 5));
    }
    return report(run_job(&daemon, MEASURE, blobs)); // the sockets end with the process
}
