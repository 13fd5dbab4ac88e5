#include "net/auth/tokens.h"

#include "common/file.h"
#include "common/mem.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define SECRET_LEN 32
#define SECRET_HEX_LEN (2 * SECRET_LEN)
#define YEAR_MAX 9999

static const char prefix[] = "kc1.";
static const char header[] =
    "# kernelcast tokens: TENANT ROLE CREATED EXPIRES SALT DIGEST (`kcast token` changes them)\n";

struct tokens {
    struct token token[TOKENS_MAX];
    size_t count;
};

struct tokens *tokens_create(void)
{
    return xcalloc(1, sizeof(struct tokens));
}

void tokens_free(struct tokens *tokens)
{
    free(tokens);
}

size_t tokens_count(const struct tokens *tokens)
{
    return tokens->count;
}

const struct token *tokens_at(const struct tokens *tokens, size_t index)
{
    return &tokens->token[index];
}

// --- hex and times

static void put_hex(char *out, const unsigned char *data, size_t len)
{
    static const char digit[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digit[data[i] >> 4];
        out[2 * i + 1] = digit[data[i] & 15];
    }
    out[2 * len] = '\0';
}

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Reads exactly 2 * len lower-case digits.
static bool get_hex(unsigned char *out, size_t len, const char *text)
{
    if (strlen(text) != 2 * len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        int high = nibble(text[2 * i]);
        int low = nibble(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

void token_time(int64_t seconds, char out[static TOKEN_TIME_LEN + 1])
{
    time_t when = (time_t)seconds;
    struct tm utc = {0};

    (void)gmtime_r(&when, &utc);
    if (utc.tm_year + 1900 > YEAR_MAX ||
        strftime(out, TOKEN_TIME_LEN + 1, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0) {
        memcpy(out, "9999-12-31T23:59:59Z", TOKEN_TIME_LEN + 1);
    }
}

// Reads a time in the form that token_time writes, and in no other.
static bool get_time(int64_t *ret, const char *text)
{
    if (strlen(text) != TOKEN_TIME_LEN) {
        return false;
    }
    struct tm utc = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (!end || *end != '\0') {
        return false;
    }
    *ret = (int64_t)timegm(&utc);
    char again[TOKEN_TIME_LEN + 1];
    token_time(*ret, again);
    return *ret > 0 && strcmp(again, text) == 0;
}

// --- reading

enum token_field { TENANT, ROLE, CREATED, EXPIRES, SALT, DIGEST, FIELDS };

static int parse_fields(struct token *ret, char *const field[FIELDS], struct err *err)
{
    struct token token = {0};
    int rc = caller_check_tenant(field[TENANT], err);

    rc = rc == 0 ? caller_role_parse(&token.role, field[ROLE], err) : rc;
    if (rc != 0) {
        return rc;
    }
    if (!get_time(&token.created_s, field[CREATED])) {
        return err_set(err, ERR_INVALID, "no time of creation");
    }
    if (strcmp(field[EXPIRES], "-") != 0 && !get_time(&token.expires_s, field[EXPIRES])) {
        return err_set(err, ERR_INVALID, "no time of expiry, and no -");
    }
    if (!get_hex(token.salt, sizeof(token.salt), field[SALT]) ||
        !get_hex(token.digest.byte, DIGEST_LEN, field[DIGEST])) {
        return err_set(err, ERR_INVALID, "salt or digest are not of their length in hex");
    }
    memcpy(token.tenant, field[TENANT], strlen(field[TENANT]) + 1);
    *ret = token;
    return 0;
}

static struct token *find(const struct tokens *tokens, const char *tenant)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if (strcmp(tokens->token[i].tenant, tenant) == 0) {
            return (struct token *)(uintptr_t)&tokens->token[i];
        }
    }
    return NULL;
}

static int parse_line(struct tokens *tokens, char *line, struct err *err)
{
    char *field[FIELDS];
    size_t count = 0;

    for (char *next = line, *text; count < FIELDS && (text = strsep(&next, " ")); count++) {
        field[count] = text;
        if (count == FIELDS - 1 && next) {
            count = FIELDS; // the loop makes it FIELDS + 1: too many
        }
    }
    if (count != FIELDS) {
        return err_set(err, ERR_INVALID, "not the %d fields of a token; take this line out",
                       FIELDS);
    }
    struct token token;
    int rc = parse_fields(&token, field, err);
    if (rc != 0) {
        return rc;
    }
    if (find(tokens, token.tenant)) {
        return err_set(err, ERR_INVALID, "%s has a token already", token.tenant);
    }
    if (tokens->count == TOKENS_MAX) {
        return err_set(err, ERR_INVALID, "more than %d tokens", TOKENS_MAX);
    }
    tokens->token[tokens->count++] = token;
    return 0;
}

int tokens_parse(struct tokens **ret, const char *text, const char *name, struct err *err)
{
    struct tokens *tokens = tokens_create();
    char *copy = xstrdup(text);
    char *next = copy;
    char *line;
    size_t number = 0;
    int rc = 0;

    while (rc == 0 && (line = strsep(&next, "\n"))) {
        number++;
        if (line[0] != '\0' && line[0] != '#') {
            rc = parse_line(tokens, line, err);
        }
    }
    free(copy);
    if (rc != 0) {
        tokens_free(tokens);
        return err_wrap(err, "%s, line %zu", name, number);
    }
    *ret = tokens;
    return 0;
}

int tokens_read(struct tokens **ret, const char *path, bool of_anybody, struct err *err)
{
    struct bytes data = {0};
    int rc = of_anybody ? file_read_private_of_anybody(&data, path, TOKENS_FILE_MAX, err)
                        : file_read_private(&data, path, TOKENS_FILE_MAX, err);

    if (rc == 0 && strlen((const char *)data.data) != data.len) {
        rc = err_set(err, ERR_INVALID, "%s: not a text", path);
    }
    rc = rc == 0 ? tokens_parse(ret, (const char *)data.data, path, err) : rc;
    bytes_clear(&data);
    return rc;
}

void tokens_write(const struct tokens *tokens, struct strbuf *out)
{
    strbuf_adds(out, header);
    char created[TOKEN_TIME_LEN + 1];
    char expires[TOKEN_TIME_LEN + 1];
    char salt[2 * TOKEN_SALT_LEN + 1];
    char digest[DIGEST_HEX_LEN + 1];
    for (size_t i = 0; i < tokens->count; i++) {
        const struct token *token = &tokens->token[i];

        token_time(token->created_s, created);
        token_time(token->expires_s, expires);
        put_hex(salt, token->salt, TOKEN_SALT_LEN);
        digest_hex(&token->digest, digest);
        strbuf_addf(out, "%s %s %s %s %s %s\n", token->tenant, caller_role_name(token->role),
                    created, token->expires_s == 0 ? "-" : expires, salt, digest);
    }
}

// --- changing

static struct digest digest_secret(const unsigned char *salt, const char *hex)
{
    struct digest_state *state = digest_begin();

    digest_add(state, salt, TOKEN_SALT_LEN);
    digest_add_text(state, hex);
    return digest_end(state);
}

int tokens_add(struct tokens *tokens, const char *tenant, enum caller_role role, int64_t now_s,
               int64_t expires_s, char **ret_text, struct err *err)
{
    struct token token = {.role = role, .created_s = now_s, .expires_s = expires_s};
    int rc = caller_check_tenant(tenant, err);

    if (rc != 0) {
        return rc;
    }
    if (find(tokens, tenant)) {
        return err_set(err, ERR_CONFLICT, "%s has a token already; revoke it first", tenant);
    }
    if (tokens->count == TOKENS_MAX) {
        return err_set(err, ERR_LIMIT, "there are %d tokens already", TOKENS_MAX);
    }
    unsigned char secret[SECRET_LEN];
    if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret) ||
        getrandom(token.salt, sizeof(token.salt), 0) != (ssize_t)sizeof(token.salt)) {
        return err_set_errno(err, ERR_SYSTEM, errno, "no random bytes are to be had");
    }
    char hex[SECRET_HEX_LEN + 1];
    put_hex(hex, secret, SECRET_LEN);
    memcpy(token.tenant, tenant, strlen(tenant) + 1);
    token.digest = digest_secret(token.salt, hex);
    tokens->token[tokens->count++] = token;
    *ret_text = xasprintf("%s%s.%s", prefix, tenant, hex);
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(hex, sizeof(hex));
    return 0;
}

int tokens_remove(struct tokens *tokens, const char *tenant, struct err *err)
{
    struct token *token = find(tokens, tenant);

    if (!token) {
        return err_set(err, ERR_NOT_FOUND, "%s has no token", tenant);
    }
    size_t index = (size_t)(token - tokens->token);
    tokens->count--;
    memmove(token, token + 1, (tokens->count - index) * sizeof(*token));
    return 0;
}

// --- checking

// Compares in constant time.
static bool same(const struct digest *a, const struct digest *b)
{
    unsigned char difference = 0;

    for (size_t i = 0; i < DIGEST_LEN; i++) {
        difference |= (unsigned char)(a->byte[i] ^ b->byte[i]);
    }
    return difference == 0;
}

int tokens_check(const struct tokens *tokens, const char *text, int64_t now_s,
                 const struct token **ret, struct err *err)
{
    static const struct token nobody;
    const struct token *token = &nobody;
    const char *secret = strrchr(text, '.');
    size_t start = sizeof(prefix) - 1;
    char tenant[TENANT_MAX + 1] = "";

    if (strncmp(text, prefix, start) == 0 && secret >= text + start &&
        (size_t)(secret - text) - start <= TENANT_MAX) {
        memcpy(tenant, text + start, (size_t)(secret - text) - start);
        token = find(tokens, tenant);
        token = token ? token : &nobody;
    }
    // The digest is computed for unknown tenants too, so that the time of the answer does not tell
    // which tenants exist.
    struct digest digest = digest_secret(token->salt, secret ? secret + 1 : "");
    if (!same(&digest, &token->digest) || token == &nobody) {
        return err_set(err, ERR_DENIED,
                       "its token is not known here; ask whoever runs this for one, or for the "
                       "reload that makes it known");
    }
    char when[TOKEN_TIME_LEN + 1];
    if (token->expires_s != 0 && token->expires_s <= now_s) {
        token_time(token->expires_s, when);
        return err_set(err, ERR_DENIED, "the token of %s has expired (%s); ask for a new one",
                       token->tenant, when);
    }
    *ret = token;
    return 0;
}

const struct token *tokens_find(const struct tokens *tokens, const char *tenant,
                                const struct digest *digest)
{
    const struct token *token = find(tokens, tenant);

    return token && same(&token->digest, digest) ? token : NULL;
}
