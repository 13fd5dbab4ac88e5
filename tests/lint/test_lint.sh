#!/usr/bin/env bash
# The checks of lint.py: a small tree that is as it should be passes, and each thing that is wrong in it is found, with its file and
# line and a sentence; and what only looks wrong is not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || { echo "skipped because python3 is not installed"; exit 77; }
work=$(mktemp -d) bad=0
trap 'rm -rf "$work"' EXIT
complain() { echo "FAILED: $*"; bad=1; }
# Which checks need nothing but Python; the format has a case of its own.
checks=braces,null,result,lines,folders,banned,marks,guards,blanks,width,shell,logging,sleeps,prints,table,layers,libraries

good_tree() {
    rm -rf "$work/tree"
    mkdir -p "$work"/tree/{common,net,daemon/jobs,daemon/sched,tests/lint,tests/daemon,tests/support,tests/data,build}
    cd "$work/tree" || exit 1
    cat >tests/lint/layers.txt <<'T'
room common :
room net : common
room daemon/sched : common
room daemon/jobs : common daemon/sched
room daemon : common net daemon/jobs daemon/sched
library sqlite3.h : daemon/jobs/job
silent common : common/log
except folders : tests/data
except text : tests/data
except sleeps : tests/support/until
T
    printf '// Errors.\n#ifndef COMMON_ERR_H\n#define COMMON_ERR_H\n\n#define MUST_CHECK\n\nstruct err;\n#define EACH(list) while (list)\n\n#endif\n' >common/err.h
    printf '#include "common/err.h"\n' >common/log.c
    printf '#ifndef DAEMON_SCHED_QUEUE_H\n#define DAEMON_SCHED_QUEUE_H\n\n#include "common/err.h"\n\nMUST_CHECK int queue_take(int *ret);\n\n#endif\n' >daemon/sched/queue.h
    cat >daemon/jobs/job.c <<'C'
#include "daemon/sched/queue.h"
#include <sqlite3.h>

// If it were code: if (x) y; x == NULL; sprintf(a, "b");
static const char *const text = "if (x) y; while (x) z; sleep(1); p != NULL";

#define FOR_ALL(i, n)                                                                              \
    do {                                                                                           \
        for (int i = 0; i < (n); i++) {                                                            \
        }                                                                                          \
    } while (0)

int job_run(struct err *err)
{
    int rc = 0;
    int count = 0;
    int status = 3; // of a process: nobody returns it

    if (!text) {
        rc = -1;
    } else if (status > 2) {
        count++;
    } else {
        count--;
    }
    do {
        count++;
    } while (count < 3);
    while (count > 0) {
        count--;
    }
    HASH_ITER (hh, a, b, c) {
        a.system(b);
    }
    return rc == 0 ? count : rc;
}
C
    cat >tests/daemon/test_job.c <<'C'
#include "daemon/jobs/job.h"
#include "tests/support/until.h"

static const char *script = "exec sleep 1000\n";
C
    printf 'void until(void)\n{\n    usleep(1);\n}\n' >tests/support/until.c
    printf '#!/bin/sh\n# sleep 1 would be wrong here\necho "it does not sleep"\n' >tests/daemon/test_job.sh
    printf 'int main(){if(x==NULL)sleep(1);}\t\n' >tests/data/candidate.c
    printf 'int generated(){if(x)y();}\n' >build/generated.c
    : >Makefile
}
lint() { python3 "$here/lint.py" "$@" "$work/tree"; }

# wrong CHECK FILE LINE SENTENCE : lint says this, and nothing else.
wrong() {
    local said
    said=$(lint --only "$checks") && complain "$1: lint passes"
    [ "$said" = "$2:$3: $4" ] || complain "$1: lint says \"$said\" instead of \"$2:$3: $4\""
}
# line NUMBER TEXT FILE : that line becomes this one.
line() { python3 -c 'import sys
number, text, name = sys.argv[1:]
lines = open(name).read().split("\n")
lines[int(number) - 1] = text
open(name, "w").write("\n".join(lines))' "$@"; }

good_tree
said=$(lint --only "$checks") || complain "the tree that is as it should be: $said"

# ---- braces ----
job=daemon/jobs/job.c
case_braces() { # LINE TEXT WORD [AT]
    good_tree
    line "$1" "$2" $job
    wrong braces $job "${4:-$1}" "the body of \`$3\` has no braces"
}
case_braces 27 '    if (count > 3) count = 0;' if
case_braces 27 '    for (;;) count = 0;' for
case_braces 27 '    while (count > 3) count = 0;' while
case_braces 27 '    while (count > 3);' while
case_braces 27 '    do count = 0; while (count > 3);' do
case_braces 27 '    if (count) { count = 0; } else count = 1;' else
case_braces 27 '    HASH_ITER (hh, a, b, c) count = 0;' HASH_ITER
case_braces 27 '    DL_FOREACH_SAFE (a, b, c) count = 0;' DL_FOREACH_SAFE
case_braces 27 '    json_object_foreach (a, b, c) count = 0;' json_object_foreach
case_braces 3 '#define LATER(x) if (x) return' if

# ---- the other checks of a file's text ----
good_tree
line 19 '    if (text != NULL) {' $job
wrong null $job 19 '`!= NULL`: test a pointer by `p` or `!p`'
good_tree
line 19 '    if (NULL == text) {' $job
wrong null $job 19 '`== NULL`: test a pointer by `p` or `!p`'
good_tree
line 34 '    return rc == 0 ? count : status;' $job
wrong result $job 17 'job_run() returns its error code in `status`; name it rc'
good_tree
printf 'int queue_take(int *ret)\n{\n    int code = 0;\n\n    return code;\n}\n' >daemon/sched/queue.c
wrong result daemon/sched/queue.c 3 'queue_take() returns its error code in `code`; name it rc'
good_tree
printf 'static int plain(void)\n{\n    int code = 0;\n\n    return code;\n}\n' >daemon/sched/queue.c
lint --only "$checks" >"$work/said" || complain "a function without an error code: $(cat "$work/said")"
good_tree
line 27 '    (void)sprintf(text, "x");' $job
wrong banned $job 27 'sprintf() is banned'
good_tree
line 27 "    // TO""DO: this" $job
wrong marks $job 27 'unfinished work'
good_tree
printf 'int x; \n' >common/mem.c
wrong blanks common/mem.c 1 'a tab or a trailing blank'
good_tree
printf '\tint x;\n' >common/mem.c
wrong blanks common/mem.c 1 'a tab or a trailing blank'
good_tree
printf 'int x;\n// %0100d\n' 1 >common/mem.c
wrong width common/mem.c 2 'the comment ends at column 103 and may end at 100'
printf 'int x; // %0100d\n' 1 >common/mem.c
wrong width common/mem.c 1 'the comment ends at column 110 and may end at 100'
printf '// | %0100d |\n// a  %0100d\n' 1 1 >common/mem.c
lint --only width >"$work/said" || complain "tables: $(cat "$work/said")"
good_tree
sed -i 's/DAEMON_SCHED_QUEUE_H/QUEUE_H/' daemon/sched/queue.h
wrong guards daemon/sched/queue.h 1 "the header's guard is not DAEMON_SCHED_QUEUE_H"
good_tree
printf 'int x;\n' >common/none.h
wrong guards common/none.h 1 "the header's guard is not COMMON_NONE_H"
good_tree
printf 'if true; then\n' >tests/daemon/test_broken.sh
wrong shell tests/daemon/test_broken.sh 2 'syntax error: unexpected end of file'

# ---- sizes ----
good_tree
yes 'int x;' | head -n 500 >common/long.c
lint --only "$checks" >"$work/said" || complain "500 lines: $(cat "$work/said")"
echo 'int y;' >>common/long.c
wrong lines common/long.c 501 'the file has 501 lines and may have 500'
good_tree
for i in $(seq 41); do
    : >"tests/data/$i.c"
    : >"net/$i.c"
done
wrong folders net 1 'the folder has 41 files and may have 40'

# ---- who does what ----
good_tree
printf 'void f(void)\n{\n    log_event(1);\n}\n' >common/mem.c
wrong logging common/mem.c 3 'this folder does not log: the function that decides does'
sentence='a test does not sleep: it waits for an event, or for a condition through tests/support/until'
for call in 'sleep(1)' '(void)usleep(1000)' 'nanosleep(&a, NULL)' 'uv_sleep(10)'; do
    good_tree
    line 4 "static void wait(void) { $call; }" tests/daemon/test_job.c
    wrong sleeps tests/daemon/test_job.c 4 "$sentence"
done
for command in 'sleep 0.1' 'until x; do sleep 1; done' 'read -rt 0.05 <> <(:) || :' 'exec sleep 600' 'sleep "$n"'; do
    good_tree
    line 3 "$command" tests/daemon/test_job.sh
    wrong sleeps tests/daemon/test_job.sh 3 "$sentence"
done

for call in 'printf("x")' '(void)fprintf(stderr, "x")' 'puts(a)' 'fwrite(a, 1, 2, b)'; do
    good_tree
    printf 'void f(void)\n{\n    %s;\n}\n' "${call//%/%%}" >common/mem.c
    wrong prints common/mem.c 3 'print by common/printable, which escapes what a terminal would obey'
done

# ---- layers ----
good_tree
printf '#include "daemon/jobs/job.h"\n' >daemon/sched/queue.c
wrong layers daemon/sched/queue.c 1 '"daemon/jobs/job.h": daemon/sched may not include daemon/jobs'
good_tree
printf '\n#include "daemon/daemon.h"\n' >net/link.c
wrong layers net/link.c 2 '"daemon/daemon.h": net may not include daemon'
good_tree
printf '#include "daemon/jobs/job.h"\n#include "net/link.h"\n' >daemon/main.c
lint --only "$checks" >"$work/said" || complain "what daemon may include: $(cat "$work/said")"
printf '#include "tests/support/until.h"\n' >daemon/main.c
wrong layers daemon/main.c 1 '"tests/support/until.h": daemon may not include what is in no room'
good_tree
mkdir attic
: >attic/old.c
wrong layers attic/old.c 1 'the file is in no room of the table'
good_tree
printf '#include <sqlite3.h>\n' >daemon/sched/queue.c
wrong libraries daemon/sched/queue.c 1 '<sqlite3.h> belongs to daemon/jobs/job'
good_tree
line 6 'library sqlite3.h : daemon/jobs/job daemon/jobs/ledger' tests/lint/layers.txt
wrong table tests/lint/layers.txt 6 'daemon/jobs/ledger does not exist'
good_tree
line 2 'room net : common proto' tests/lint/layers.txt
wrong table tests/lint/layers.txt 2 'net may include proto, which is no room of this table'
good_tree
line 2 'rooms net : common' tests/lint/layers.txt
lint --only table | grep -qx 'tests/lint/layers.txt:2: `rooms net : common` is no entry of this table' || complain 'an entry that is none'

# ---- the format ----
good_tree
printf 'BasedOnStyle: LLVM\nIndentWidth: 4\n' >.clang-format
rm -r daemon tests/daemon tests/support common/err.h
printf 'int  x;\n' >common/log.c
said=$(lint --only format 2>&1)
case $said in
'format not checked: needs clang-format 14' | 'common/log.c:1: not as clang-format writes it; run `make format`') ;;
*) complain "format: $said" ;;
esac
exit $bad
