// Design note. A connection shows its token once and is remembered by the tenant and digest of the
// token's line, not by a pointer to it. Every request looks that line up again, so that a reload of
// the tokens file, a new role and an expiry count at once.
#include "net/auth/identity.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

// Checks that the files given are those that listening on url takes.
static int check_rules(const struct identity_files *files, const struct url *url, const char *text,
                       struct err *err)
{
    bool any = files->ca || files->cert || files->key || files->tokens;
    bool all = files->ca && files->cert && files->key && files->tokens;

    if (!url->tls && !url_is_loopback(url)) {
        return err_set(
            err, ERR_DENIED,
            "%s is not on loopback, and without TLS and tokens everyone who reaches it "
            "could run code; listen on tcp://127.0.0.1:PORT, or on tls:// with --tls-ca, "
            "--tls-cert, --tls-key and --tokens",
            text);
    }
    if (url->tls && !all) {
        return err_set(
            err, ERR_DENIED,
            "%s needs --tls-ca, --tls-cert, --tls-key and --tokens; `kcast tls init` and "
            "`kcast token add` make these files",
            text);
    }
    if (!url->tls && any) {
        return err_set(err, ERR_USAGE,
                       "%s is not encrypted and has no use for certificates or tokens; listen on "
                       "tls://, or leave them out",
                       text);
    }
    return 0;
}

int identity_load(struct identity *ret, const struct identity_files *files, const struct url *url,
                  const char *text, struct err *err)
{
    struct tls_files tls = {.ca = files->ca, .cert = files->cert, .key = files->key};
    struct identity identity = {0};
    int rc = check_rules(files, url, text, err);

    if (rc == 0 && url->tls) {
        rc = tls_create(&identity.tls, TLS_SERVER, &tls, err);
        rc = rc == 0 ? tokens_read(&identity.tokens, files->tokens, false, err) : rc;
    }
    if (rc != 0) {
        identity_release(&identity);
        return rc;
    }
    *ret = identity;
    return 0;
}

void identity_release(struct identity *identity)
{
    tls_release(identity->tls);
    tokens_free(identity->tokens);
    *identity = (struct identity){0};
}

// Checks a token and remembers its line in holder.
static int accept_token(const struct identity *identity, struct holder *holder, const char *token,
                        int64_t now_s, struct err *err)
{
    const struct token *row;
    int rc = tokens_check(identity->tokens, token, now_s, &row, err);

    if (rc == 0) {
        *holder = (struct holder){.known = true, .digest = row->digest};
        memcpy(holder->tenant, row->tenant, sizeof(holder->tenant));
    }
    return rc;
}

int identity_admit(const struct identity *identity, struct holder *holder, const char *token,
                   uint64_t op, int64_t now_s, struct caller *ret, struct err *err)
{
    enum caller_role needed = caller_role_for(op);

    if (!identity->tokens) {
        *ret = (struct caller){.tenant = TENANT_LOCAL, .role = CALLER_ADMIN};
        return 0;
    }
    int rc = token ? accept_token(identity, holder, token, now_s, err) : 0;
    if (rc != 0) {
        return rc;
    }
    if (!holder->known) {
        return err_set(err, ERR_DENIED, "no token was shown; ask whoever runs this for one");
    }
    const struct token *row = tokens_find(identity->tokens, holder->tenant, &holder->digest);
    if (!row || (row->expires_s != 0 && row->expires_s <= now_s)) {
        return err_set(err, ERR_DENIED, "the token of %s %s; ask for a new one", holder->tenant,
                       row ? "has expired" : "was revoked");
    }
    if (row->role < needed) {
        return err_set(err, ERR_DENIED, "%s has the role %s, and %s takes %s", holder->tenant,
                       caller_role_name(row->role), op_name(op), caller_role_name(needed));
    }
    *ret = (struct caller){.tenant = holder->tenant, .role = row->role};
    return 0;
}

bool identity_token_is_listed(const struct identity *identity, const struct holder *holder)
{
    return !holder->known || !identity->tokens ||
           tokens_find(identity->tokens, holder->tenant, &holder->digest);
}

void identity_protect_process(void)
{
    const struct rlimit none = {0};

    (void)setrlimit(RLIMIT_CORE, &none); // lowering a limit cannot fail
    (void)prctl(PR_SET_DUMPABLE, 0);
}
