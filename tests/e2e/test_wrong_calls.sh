#!/usr/bin/env bash
# A table of wrong calls: each ends with the documented exit code of its cause, with one sentence that says what is wrong, and with
# that sentence as a JSON object when --json is given. A row: exit code | what the sentence says | command. $P is the folder of
# problems, $R the tree, $N an address where nobody listens, $U a daemon.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
work=$(mktemp -d)
daemon=
finish() {
    [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; }
    rm -rf "$work"
}
trap finish EXIT
cd "$work"
bad=0 rows=0
unset KCAST_POOL KCAST_WORKER KCAST_PROBLEMS XDG_CONFIG_HOME
export HOME=$work/home PATH=$bin:$PATH R=$root P=$root/problems/cpu N=tcp://127.0.0.1:1
mkdir -p home other/broken
"$bin/kcastd" --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 --devices cpu:1 --sandbox off --state state 2>log &
daemon=$!
listens() { U=$(sed -n 's/.* ready url=\([^ ]*\) .*/\1/p' log); [ -n "$U" ] || ! kill -0 $daemon 2>/dev/null; }
within 60 listens
export U
[ -n "$U" ] || { echo "kcastd does not start: $(cat log)"; exit 1; }

printf 'int x;\n' >x.c
: >empty.c
printf '//@ tune WIDTH in (1, 2, 4)\n//@ tune DEPTH in (1, 2)\nint x = WIDTH;\n' >template.c
printf 'not a run' >garbage.run
printf '[kcast]\npool\n' >home/config
printf '[kcastd]\nlsiten = x\n' >kcastd.ini
printf '[worker]\nthreads = many\n' >worker.ini
printf '{"name": 1}' >other/broken/problem.json
mkdir -p nothing
# A run whose first event has another byte, and one whose sources are gone.
if ! kcast --pool "$U" --no-worker -q search "$P/scan" --run good.run --candidates 1 --seed 3 >out 2>err && [ ! -s good.run ]; then
    echo "a search for the run files: $(cat err)"; exit 1
fi
cp good.run damaged.run
python3 - <<'TEXT'
import sqlite3
run = sqlite3.connect("damaged.run")
run.execute("UPDATE blob SET data = x'00'")
run.commit()
TEXT

row() {
    local code=$1 says=$2 command=$3 status=0
    rows=$((rows + 1))
    timeout 60 bash -c "$command" >out 2>err </dev/null || status=$?
    local sentence
    sentence=$(grep -v -e ' notice ' -e ' info ' -e ' warning ' err | tail -1)
    if [ $status -ne "$code" ]; then
        echo "\`$command\` ended with $status and not with $code: $sentence"; bad=1
    elif ! grep -qF -- "$says" <<<"$sentence"; then
        echo "\`$command\` does not say \"$says\": $sentence"; bad=1
    elif [[ $command == 'kcast '* && $(grep -c . err) -ne 1 ]]; then
        echo "\`$command\` says more than a sentence:"; cat err; bad=1
    elif [[ $command == 'kcast --json '* ]] && ! tail -1 out | grep -q "\"error\":{\"name\":\"[a-z-]*\",\"exit_code\":$code,"; then
        echo "\`$command\` has no object of its error: $(tail -1 out)"; bad=1
    fi
}
while read -r line; do # what is said may have a | of its own, without blanks
    [ -n "$line" ] || continue
    rest=${line#* | }
    row "${line%% | *}" "${rest% | *}" "${rest##* | }"
done <<'TABLE'
2 | no command is given; `kcast help` lists them | kcast
2 | there is no command "serach"; did you mean "search"? | kcast serach
2 | did you mean "measure"? | kcast mesure
2 | did you mean "token add"? | kcast token ad
2 | there is no command "frobnicate"; `kcast help` lists them | kcast frobnicate
2 | `kcast token` is followed by one of "add", "revoke", "list" | kcast token
2 | "frob" is none | kcast problem frob
2 | `kcast help` takes one command | kcast help search resume
2 | there is no command "serch"; did you mean "search"? | kcast help serch
2 | unknown option --polo; did you mean --pool? | kcast --polo x status
2 | unknown option --jsn; did you mean --json? | kcast status --jsn
2 | unknown option --budgte; did you mean --budget? | kcast search scan --budgte 3s
2 | unknown option --measurement; did you mean --measurements? | kcast resume x.run --measurement 3
2 | unknown option --frobnicate; --help lists all | kcast status --frobnicate
2 | unknown option -Z | kcast status -Z
2 | option --pool needs a value | kcast status --pool
2 | would not use --worker; leave one of the two out | kcast --local --worker tcp://127.0.0.1:1 status
2 | would not use --pool; leave one of the two out | kcast status --pool tcp://127.0.0.1:1 --local
2 | option --sandbox: 'maybe' is none of on|off | kcast --sandbox maybe status
2 | option --budget: 'soon' is not a duration like 90, 250ms, 30s, 5m or 1h30m | kcast search scan --budget soon
2 | '30m1h' is not a duration | kcast search scan --budget 30m1h
2 | '1h30' is not a duration | kcast search scan --max-time 1h30
2 | option --confidence: 2 is outside | kcast search scan --confidence 2
2 | option --target: 0.5 is outside | kcast search scan --target 0.5
2 | option --measurements: 'many' is not a whole number | kcast search scan --measurements many
2 | option --strategy: 'luck' is none of best-of-n|greedy|islands|puct | kcast search scan --strategy luck
2 | option --candidates: '-3' is not a whole number | kcast search scan --candidates -3
2 | `kcast search` needs PROBLEM | kcast search
2 | `kcast measure` needs PROBLEM CANDIDATE | kcast measure scan
2 | `kcast resume` needs RUN | kcast resume
2 | `kcast status` does not take the argument "now" | kcast status now
2 | `kcast search` does not take the argument "softmax" | kcast search scan softmax
2 | "-" stands for stdin, and stdin is read once | kcast --pool $N measure $P/scan - -
2 | template.c has no parameter WITDH; did you mean WIDTH? | kcast --pool $N measure $P/scan template.c --define WITDH=4
2 | template.c: WIDTH is 3, and may be 1, 2, 4 | kcast --pool $N measure $P/scan template.c --define WIDTH=3 --define DEPTH=1
2 | no value for DEPTH (1, 2); give each with --define, or let `kcast tune` find the best ones | kcast --pool $N measure $P/scan template.c -D WIDTH=4
2 | '4' is no name of a parameter | kcast --pool $N measure $P/scan x.c --define 4
2 | WIDTH is given twice | kcast --pool $N measure $P/scan x.c -DWIDTH=1 -DWIDTH=2
2 | `kcast cancel` needs job numbers or --search | kcast --pool $N cancel
2 | the search has considered | kcast --pool $U --no-worker resume good.run --candidates 1
2 | t/s/x: give TENANT or TENANT/SEARCH | kcast --pool $N budget set t/s/x 10
2 | --weight: 0 is outside 0.01 to 100 | kcast --pool $N budget set t --weight 0
2 | --weight: 0.005 is outside 0.01 to 100 | kcast --pool $N search $P/scan --weight 0.005
2 | is outside the allowed range, 100ms to 1h | kcast --pool $N top -n 0
2 | good.run is the file that is read | kcast report good.run -o good.run
2 | --case needs --problem | kcast wisdom x.json --case N=1
2 | did you mean "search"? | kcast --json searhc
2 | there is no policy "hope" | kcast --json replay --policy hope $R/docs/h200/spaces/rope.space
2 | unknown option --sed; did you mean --seed? | kcast --json replay --sed 3
2 | unknown option --lisen; did you mean --listen? | kcastd --lisen tcp://127.0.0.1:0
2 | --devices gpu: neither auto nor any of cpu | kcastd --devices gpu --state s1
2 | now: kcastd takes options only | kcastd now
2 | option --log-level: 'loud' is none of | kcastd --log-level loud
2 | unknown option --thread; did you mean --threads? | kcast-worker --thread 3
2 | now: kcast-worker takes options only | kcast-worker now
2 | option --engine: 'magic' is none of | kcast-worker --engine magic
2 | unknown mode 'mesure'; did you mean measure? | kcast-exec mesure
2 | a mode is needed | kcast-exec
2 | cuda-measure needs a GPU | kcast-exec cuda-measure
2 | unknown option --cgruop; did you mean --cgroup? | kcast-exec --cgruop x probe
3 | missing.c | kcast --pool $N measure $P/scan missing.c
3 | empty.c is empty | kcast --pool $N measure $P/scan empty.c
3 | stdin is empty | kcast --pool $N measure $P/scan -
3 | /dev/null: not a regular file | kcast --pool $N measure $P/scan /dev/null
3 | c/kernelcast/config: not a regular file | mkdir -p d/c/kernelcast/config; XDG_CONFIG_HOME=$PWD/d/c kcast status
3 | nothing has no file whose name ends in .c | kcast --pool $N measure $P/scan nothing
3 | no problem | kcast --pool $N measure nosuchproblem x.c
3 | broken/problem.json | kcast --pool $N measure ./other/broken x.c
3 | no job 99999 at tcp | kcast --pool $U cancel 99999
3 | no job 99999 at tcp | kcast --pool $U jobs 99999
3 | no job 99999 at tcp | kcast --json --pool $U job 99999
3 | no port | kcast --pool tcp://nowhere status
3 | pool.txt: cannot be opened | kcast --pool file:pool.txt status
3 | x.c:1: "int" is no url | kcast --pool file:x.c --no-worker measure $P/scan x.c
3 | "file:" names no file; write file:PATH | kcast --pool file: status
3 | good.run exists already | kcast --pool $U --no-worker search $P/scan --run good.run
3 | absent.run | kcast --pool $N resume absent.run
3 | garbage.run | kcast --pool $N resume garbage.run
3 | garbage.run | kcast report garbage.run
3 | damaged.run: the sources of | kcast export damaged.run
3 | is damaged; the report is written without it | kcast -q report damaged.run -o damaged.html
3 | kcastd.ini:2: unknown key 'lsiten'; did you mean 'listen'? | kcastd --config kcastd.ini
3 | worker.ini:2: threads: 'many' is not a whole number | kcast-worker --config worker.ini
3 | absent.ini | kcastd --config absent.ini
3 | config:2: neither 'key = value' nor '[section]' | mkdir -p c/kernelcast; cp home/config c/kernelcast/config; XDG_CONFIG_HOME=$PWD/c kcast status
3 | absent.run | kcast --json report absent.run
3 | absent.space | kcast --json replay absent.space
3 | missing.c | kcast --json --pool $N measure $P/scan missing.c
6 | no kcastd answers on tcp://127.0.0.1:1 | kcast --pool $N status
6 | no kcastd answers | kcast --pool $N measure $P/scan x.c
6 | no kcastd answers | kcast --pool $N top
6 | no kcastd answers | kcast --json --pool $N jobs
6 | tcp://127.0.0.1:1 | KCAST_POOL=$N kcast status
6 | no kcast-worker answers | kcast --pool $U --worker $N forecast $P/scan x.c
6 | --no-worker was given | kcast --pool $U --no-worker forecast $P/scan x.c
7 | cannot write the output: No space left on device | kcast help >/dev/full
7 | cannot write the output: No space left on device | kcast replay --help >/dev/full
7 | cannot write the output: No space left on device | kcast replay --seeds 1 --policy all $R/docs/h200/spaces/rope.space >/dev/full
7 | cannot write the output: No space left on device | kcast export $R/docs/h200/spaces/rope.space >/dev/full
7 | kcastd: cannot write the output: No space left on device | kcastd --help >/dev/full
7 | cannot write the output: No space left on device | kcastd --version >/dev/full
7 | kcast-worker: cannot write the output: No space left on device | kcast-worker --help >/dev/full
7 | kcast-exec: cannot write the output: No space left on device | kcast-exec --help >/dev/full
9 | cannot write the output: Bad file descriptor | kcast help >&-
9 | stdin: cannot be read: Bad file descriptor | kcast --pool $N measure $P/scan - <&-
9 | nodir/x.html: cannot be created: No such file or directory | kcast report good.run -o nodir/x.html
9 | nodir/x.space: cannot be created: No such file or directory | kcast export good.run --format space -o nodir/x.space
9 | /proc/x: | kcastd --listen tcp://127.0.0.1:0 --state /proc/x
12 | Address already in use | kcastd --listen $U --devices cpu:1 --sandbox off --state s2
12 | Address already in use | kcast-worker --listen $U --state s3
12 | another kcastd | kcastd --listen tcp://127.0.0.1:0 --devices cpu:1 --sandbox off --state state
13 | is not on loopback | kcastd --listen tcp://0.0.0.0:0 --state s4
13 | needs --tls-ca | kcastd --listen tls://0.0.0.0:0 --state s4
14 | no device for problems in CUDA | kcast --pool $U measure $P/../cuda/softmax $P/../cuda/softmax/baseline.cu
TABLE
[ $rows -ge 80 ] || { echo "the table has $rows rows"; bad=1; }
exit $bad
