// Operations of the ledger: their names, whether they write, and how their answer is emptied. What
// they do is in ledger_sql.c.
#include "daemon/store/ledger_sql.h"
#include <stdlib.h>

const char *ledger_op_name(enum ledger_op_kind kind)
{
    static const char *const name[] = {
        [LEDGER_SUBMIT] = "submit",
        [LEDGER_MOVE] = "move",
        [LEDGER_FINISH] = "finish",
        [LEDGER_FORGET] = "forget",
        [LEDGER_READ_RESULTS] = "read-results",
        [LEDGER_READ_CACHED] = "read-cached",
        [LEDGER_READ_COMPILED] = "read-compiled",
        [LEDGER_KEEP_COMPILED] = "keep-compiled",
        [LEDGER_DROP_COMPILED] = "drop-compiled",
        [LEDGER_ORDER] = "order",
        [LEDGER_DROP_ORDER] = "drop-order",
        [LEDGER_KEEP_ACCOUNT] = "keep-account",
        [LEDGER_BARRIER] = "barrier",
    };

    return name[kind];
}

bool ledger_op_writes(enum ledger_op_kind kind)
{
    return kind != LEDGER_READ_RESULTS && kind != LEDGER_READ_CACHED &&
           kind != LEDGER_READ_COMPILED && kind != LEDGER_BARRIER;
}

void ledger_op_reset(struct ledger_op *op)
{
    for (size_t i = 0; i < op->answer_count; i++) {
        bytes_clear(&op->answer[i]);
    }
    free(op->answer);
    op->answer = NULL;
    op->answer_count = 0;
    free(op->error);
    op->error = NULL;
}
