#!/usr/bin/env bash
# Who may include whom, and which module may include which library. Reads #include lines only.
set -eu
cd "$(dirname "$0")/.."
bad=0
complain() { echo "$1"; bad=1; }

declare -A may=(
    [common]="common" [proto]="proto common" [contract]="contract common" [net]="net proto common"
    [daemon]="daemon net contract proto common" [exec]="exec contract proto common" [cuda]="cuda exec contract proto common"
    [worker]="worker net contract proto common" [client]="client net contract proto common"
    [replay]="replay client worker net contract proto common"
)
for folder in "${!may[@]}"; do
    while IFS=: read -r file _ include; do
        [ "$file" != executor/main.c ] || continue # the one place where the programs' halves meet
        other=${include#*\"}
        other=${other%%/*}
        case " ${may[$folder]} " in *" $other "*) ;; *) complain "$file: $include: $folder/ may include ${may[$folder]} only" ;; esac
    done < <(grep -nE '^ *# *include *"[a-z]+/' "$folder"/*.[ch])
done

# library header -> the modules that may include it
declare -A owner=(
    [msgpack]='proto/message.c' [sqlite3.h]='daemon/ledger|worker/store|worker/cache|client/run'
    [jansson.h]='contract/problem|client/|worker/answer|worker/json_find|worker/ask' [xgboost/]='worker/model/boost.c' [curl/]='worker/llm/http.c' [seccomp.h]='exec/filter'
    [ini.h]='common/options.c' [curses.h]='client/top/top_screen.c' [zlib.h]='client/space/space.c' [mbedtls/]='common/digest.c|net/tls/tls.c|net/tls/authority.c'
)
for header in "${!owner[@]}"; do
    while IFS=: read -r file _; do
        [[ $file =~ ^(${owner[$header]}) ]] || complain "$file includes <$header…>, which belongs to ${owner[$header]}"
    done < <(grep -nE "^ *# *include *<$header" {common,proto,contract,net,daemon,exec,cuda,worker,client}/*.[ch])
done
exit $bad
