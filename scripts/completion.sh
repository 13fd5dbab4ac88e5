#!/usr/bin/env bash
# Completion of all programs for a shell, on stdout, from their --help.
#   completion.sh bash|zsh|fish BIN [LIBEXEC]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
shell=${1:-} bin=$2
table=$("$here/help-table.sh" "$bin" "${3:-$bin}")

# The options of kcast and its commands that are followed by a value, "--pool --worker -r …".
valued=$(awk -F'\t' '$1 == "kcast" && $3 == "option" && $6 != "-" { print "--" $4; if ($5 != "-") print "-" $5 }' <<<"$table" | sort -u | tr '\n' ' ')
valued=${valued% }

bash_file() {
    cat <<'TEXT'
# Completion of kcast, kcastd, kcast-worker and kcast-exec for bash. Made by scripts/completion.sh.

# PROGRAM COMMAND: its options.
_kernelcast_options() {
    case "$1 $2" in
TEXT
    awk -F'\t' '$3 == "option" {
            key = $1 " " $2
            if (!(key in words)) order[++count] = key
            words[key] = words[key] " --" $4 ($6 == "-" ? "" : "=") ($5 == "-" ? "" : " -" $5)
        }
        END { for (i = 1; i <= count; i++) printf "    \"%s\") echo \"%s\" ;;\n", order[i], substr(words[order[i]], 2) }' <<<"$table"
    cat <<'TEXT'
    esac
}

# PROGRAM COMMAND OPTION: what its value may be, one of "words …", "file", "folder", "generator", "pool", "value"; nothing for a flag.
_kernelcast_value() {
    case "$1 $2 $3" in
TEXT
    awk -F'\t' '$3 == "option" && $6 != "-" {
            kind = "value"
            if ($7 != "-") { kind = "words " $7; gsub(/\|/, " ", kind) }
            else if ($6 ~ /^(FILE|PATH)$/) kind = "file"
            else if ($6 == "DIR") kind = "folder"
            else if ($4 == "generator" || $4 == "pool") kind = $4
            printf "    \"%s %s --%s\"%s) echo \"%s\" ;;\n", $1, $2, $4, ($5 == "-" ? "" : " | \"" $1 " " $2 " -" $5 "\""), kind
        }' <<<"$table"
    cat <<'TEXT'
    esac
}

_kernelcast() {
    local program=${COMP_WORDS[0]##*/} command=- current i word value= option= first= next= argument= line=$COMP_LINE
    local -a words=()
TEXT
    printf '    local commands='
    awk -F'\t' '$3 == "command" && $1 == "kcast" { split($4, part, " "); if (!(part[1] in seen)) { seen[part[1]]; list = list " " part[1] } } END { printf "\"%s\"\n", substr(list, 2) }' <<<"$table"
    printf '    local problems=' # the commands whose first argument is a problem
    awk -F'\t' '$3 == "argument" && $4 == "PROBLEM" { list = list "|" $2 } END { printf "\"%s\"\n", substr(list, 2) }' <<<"$table"
    printf '    local modes='
    awk -F'\t' '$3 == "command" && $1 == "kcast-exec" { split($4, part, " "); list = list " " part[1] } END { printf "\"%s\"\n", substr(list, 2) }' <<<"$table"
    cat <<'TEXT'
    COMPREPLY=()
    # readline makes words of --option, = and value, and of tcp, : and //host as well. The latter are one word here; readline replaces
    # what stands behind the last colon.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((${#words[@]} > 1)) && [[ $line != [[:blank:]]* && $word != =* && ${words[-1]} != = && ($word == :* || ${words[-1]} == *:) ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        line=${line#"${line%%[![:blank:]]*}"}
        line=${line#"$word"}
    done
    local -i last=$((${#words[@]} - 1))
    current=${words[last]}
    if [[ $current == = ]]; then
        option=${words[last - 1]} current=
    elif ((last >= 2)) && [[ ${words[last - 1]} == = ]]; then
        option=${words[last - 2]}
    elif ((last >= 1)) && [[ ${words[last - 1]} == -* ]]; then
        option=${words[last - 1]}
    fi
    local before=
    [[ $current != *:* ]] || before=${current%"${current##*:}"}
    # The words before the cursor that name the command, and the first one behind them.
    if [[ $program == kcast ]]; then
        for ((i = 1; i < last; i++)); do
            word=${words[i]}
            if [[ $word == -* ]]; then
                if [[ ${words[i + 1]:-} == = ]]; then
                    ((i += 2))
                else
                    [[ -z $(_kernelcast_value kcast "$command" "$word")$(_kernelcast_value kcast - "$word") ]] || ((i += 1))
                fi
            elif [[ -z $first ]]; then
                first=$word command=$word
            elif [[ -z $next && -z $argument && " $(_kernelcast_second "$first") " == *" $word "* ]]; then
                next=$word command="$first $word"
            elif [[ -z $argument ]]; then
                argument=$word
            fi
        done
    fi
    if [[ -n $option ]]; then
        value=$(_kernelcast_value "$program" "$command" "$option")
        [[ -n $value ]] || value=$(_kernelcast_value "$program" - "$option")
    fi
    case $value in
    'words '*) COMPREPLY=($(compgen -W "${value#words }" -- "$current")) ; return ;;
    folder) COMPREPLY=($(compgen -d -- "$current")); compopt -o filenames; return ;;
    file) COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames; return ;;
    generator)
        case $current in
        *:*) COMPREPLY=($(compgen -f -- "${current#"$before"}")); compopt -o filenames ;;
        *) COMPREPLY=($(compgen -W "tunable llm exec: pool:" -- "$current")); [[ ${COMPREPLY[*]} != *: ]] || compopt -o nospace ;;
        esac
        return
        ;;
    pool)
        case $current in
        *file:*) COMPREPLY=($(compgen -f -- "${current#"$before"}")); compopt -o filenames ;;
        *[:,]*) ;;
        *) COMPREPLY=($(compgen -W "tcp:// tls:// dns:// dns+tls:// file:" -- "$current")); compopt -o nospace ;;
        esac
        return
        ;;
    value) return ;;
    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$(_kernelcast_options "$program" "$command") $([[ $command == - ]] || _kernelcast_options "$program" -)" -- "$current"))
        [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
    elif [[ $program == kcast && -z $first ]]; then
        COMPREPLY=($(compgen -W "$commands" -- "$current"))
    elif [[ $program == kcast && -z $next$argument && -n $(_kernelcast_second "$first") ]]; then
        COMPREPLY=($(compgen -W "$(_kernelcast_second "$first")" -- "$current"))
    elif [[ $program == kcast && $first == help ]]; then
        COMPREPLY=($(compgen -W "$(_kernelcast_second "$next")" -- "$current"))
    elif [[ $program == kcast-exec ]]; then
        COMPREPLY=($(compgen -W "$modes" -- "$current"))
    elif [[ $program == kcast ]]; then
        [[ -n $argument || "|$problems|" != *"|$command|"* ]] ||
            COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" problem list 2>/dev/null | awk '{ print $1 }')" -- "$current"))
        COMPREPLY+=($(compgen -f -- "$current"))
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
        compopt -o filenames
    fi
}

# FIRST: the words that may follow the first one of a command of two words.
_kernelcast_second() {
    case $1 in
TEXT
    awk -F'\t' '$3 == "command" && $1 == "kcast" {
            n = split($4, part, " ")
            if (!(part[1] in seen)) { seen[part[1]]; order[++count] = part[1] }
            if (n == 2) second[part[1]] = second[part[1]] " " part[2]
            if (!(part[1] in listed)) { all = all " " part[1]; listed[part[1]] }
        }
        END {
            for (i = 1; i <= count; i++) if (second[order[i]] != "") printf "    %s) echo \"%s\" ;;\n", order[i], substr(second[order[i]], 2)
            printf "    help) echo \"%s\" ;;\n", substr(all, 2)
        }' <<<"$table"
    cat <<'TEXT'
    esac
}

complete -F _kernelcast kcast kcastd kcast-worker kcast-exec
TEXT
}

zsh_file() {
    cat <<'TEXT'
#compdef kcast kcastd kcast-worker kcast-exec
# Completion of kcast, kcastd, kcast-worker and kcast-exec for zsh. Made by scripts/completion.sh.

# The problems that can be named without a path, and files.
_kernelcast_problems() {
    local -a names=(${(f)"$($words[1] problem list 2>/dev/null | awk '{ print $1 }')"})
    compadd -a names
    _files
}

_kernelcast() {
    local program=${words[1]:t} command=- first= second_word= word i
    local -a argument
    local -a options global commands second
    commands=(
TEXT
    awk -F'\t' -v q="'" '$3 == "command" && $1 == "kcast" {
            split($4, part, " "); help = $8; if (part[1] in seen) next; seen[part[1]]
            gsub(q, q "\\" q q, help); gsub(/:/, "\\:", help); printf "        %s%s:%s%s\n", q, part[1], help, q }' <<<"$table"
    cat <<'TEXT'
    )
    if [[ $program == kcast ]]; then
TEXT
    printf '        local -a valued=(%s)\n' "$valued"
    cat <<'TEXT'
        for ((i = 2; i < CURRENT; i++)); do
            word=$words[i]
            if [[ $word == -* ]]; then
                ((!${valued[(Ie)$word]})) || ((i++))
                continue
            fi
            if [[ -z $first ]]; then
                first=$word
                command=$word
            else
                second_word=$word
                case "$first $word" in
TEXT
    awk -F'\t' '$3 == "command" && $1 == "kcast" && $4 ~ / / { printf "                (\"%s\") command=\"%s\" ;;\n", $4, $4 }' <<<"$table"
    cat <<'TEXT'
                esac
                break
            fi
        done
    fi
    case "$program $command" in
TEXT
    awk -F'\t' -v q="'" '
        function spec(    help, action, text) {
            help = $8; gsub(q, q "\\" q q, help); gsub(/\[/, "\\[", help); gsub(/\]/, "\\]", help); gsub(/:/, "\\:", help)
            action = ""
            if ($6 != "-") {
                if ($7 != "-") { action = $7; gsub(/\|/, " ", action); action = ":value:(" action ")" }
                else if ($6 ~ /^(FILE|PATH)$/) action = ":file:_files"
                else if ($6 == "DIR") action = ":folder:_files -/"
                else action = ":value: "
            }
            text = q "--" $4 ($6 == "-" ? "" : "=") "[" help "]" action q
            if ($5 != "-") text = text "\n        " q "-" $5 ($6 == "-" ? "" : "+") "[" help "]" action q
            return text
        }
        $3 == "option" {
            key = $1 " " $2
            if (!(key in rows)) order[++count] = key
            rows[key] = rows[key] "        " spec() "\n"
        }
        END { for (i = 1; i <= count; i++) printf "    (\"%s\") options=(\n%s    ) ;;\n", order[i], rows[order[i]]
              printf "    esac\n    global=(\n%s    )\n", rows["kcast -"] }' <<<"$table"
    cat <<'TEXT'
    [[ $program == kcast && $command != - ]] || global=()
    local two=$first
    [[ $first != help || -z $second_word ]] || two=$second_word
    case "$program $two" in
TEXT
    awk -F'\t' '$3 == "command" && $1 == "kcast" {
            n = split($4, part, " ")
            if (!(part[1] in seen)) { seen[part[1]]; order[++count] = part[1] }
            if (n == 2) list[part[1]] = list[part[1]] " " part[2]
        }
        END { for (i = 1; i <= count; i++) if (list[order[i]] != "") printf "    (\"kcast %s\") second=(%s) ;;\n", order[i], substr(list[order[i]], 2) }' <<<"$table"
    cat <<'TEXT'
    esac
    case $command in
TEXT
    awk -F'\t' -v q="'" '$3 == "argument" && $4 == "PROBLEM" { # behind the words of the command
            n = split($2, part, " ")
            printf "    (\"%s\") argument=(", $2
            for (i = 1; i <= n; i++) printf "%s%d:word: %s ", q, i, q
            printf "%s%d:problem:_kernelcast_problems%s) ;;\n", q, n + 1, q }' <<<"$table"
    cat <<'TEXT'
    esac
    if [[ $program == kcast && -z $first && $words[CURRENT] != -* ]]; then
        _describe command commands
    elif [[ $program == kcast && $first == help && $words[CURRENT] != -* ]]; then
        if [[ -z $second_word ]]; then _describe command commands; else compadd -a second; fi
    elif [[ -n $second && $command == $first && -z $second_word && $words[CURRENT] != -* ]]; then
        compadd -a second
    elif [[ $program == kcast-exec ]]; then
TEXT
    awk -F'\t' '$3 == "command" && $1 == "kcast-exec" { split($4, part, " "); list = list " " part[1] } END { printf "        _arguments -S $options \"*:mode:(%s)\"\n", substr(list, 2) }' <<<"$table"
    cat <<'TEXT'
    else
        _arguments -S $options $global $argument '*:file:_files'
    fi
}

_kernelcast "$@"
TEXT
}

fish_file() {
    cat <<'TEXT'
# Completion of kcast, kcastd, kcast-worker and kcast-exec for fish. Made by scripts/completion.sh.

# The words before the cursor, without options and their values.
function __kernelcast_words
    set -l tokens (commandline -opc)[2..-1]
TEXT
    printf '    set -l valued %s\n' "$valued"
    cat <<'TEXT'
    set -l skip 0
    for word in $tokens
        if test $skip -eq 1
            set skip 0
        else if string match -q -- '-*' $word
            contains -- $word $valued; and set skip 1
        else
            echo $word
        end
    end
end

# Whether these words name this command, of one word or two; without an argument: whether they name none.
function __kernelcast_is
    set -l words (__kernelcast_words)
    if test (count $argv) -eq 0
        test (count $words) -eq 0
        return
    end
    for i in (seq (count $argv))
        test "$words[$i]" = "$argv[$i]"; or return 1
    end
end

# Whether they are these, and nothing more.
function __kernelcast_first
    set -l words (__kernelcast_words)
    test "$words" = "$argv"
end

TEXT
    awk -F'\t' -v q="'" '
        function quoted(text) { gsub(/\\/, "\\\\", text); gsub(q, "\\" q, text); return q text q }
        $3 == "command" && $1 == "kcast" {
            n = split($4, part, " ")
            if (n == 1 || !(part[1] in seen)) printf "complete -c kcast -f -n __kernelcast_is -a %s -d %s\n", part[1], quoted($8)
            seen[part[1]]
            if (n == 2) printf "complete -c kcast -f -n %s -a %s -d %s\n", quoted("__kernelcast_first " part[1]), part[2], quoted($8)
            if (n == 1 || !(part[1] in helped)) printf "complete -c kcast -f -n %s -a %s -d %s\n", quoted("__kernelcast_first help"), part[1], quoted($8)
            helped[part[1]]
            if (n == 2) printf "complete -c kcast -f -n %s -a %s -d %s\n", quoted("__kernelcast_first help " part[1]), part[2], quoted($8)
        }
        $3 == "command" && $1 == "kcast-exec" { split($4, part, " "); printf "complete -c kcast-exec -f -a %s -d %s\n", part[1], quoted($8) }
        $3 == "argument" && $4 == "PROBLEM" {
            printf "complete -c kcast -n %s -a %s -d problem\n", quoted("__kernelcast_first " $2), quoted("(kcast problem list 2>/dev/null | string replace -r \" .*\" \"\")")
        }
        $3 == "option" {
            line = "complete -c " $1
            if ($2 != "-") line = line " -n " quoted("__kernelcast_is " $2)
            line = line " -l " $4 ($5 == "-" ? "" : " -s " $5)
            if ($6 != "-") {
                if ($7 != "-") { choices = $7; gsub(/\|/, " ", choices); line = line " -x -a " quoted(choices) }
                else if ($6 ~ /^(FILE|PATH)$/) line = line " -r -F"
                else if ($6 == "DIR") line = line " -x -a " quoted("(__fish_complete_directories)")
                else line = line " -x"
            }
            print line " -d " quoted($8)
        }' <<<"$table"
}

case $shell in
bash) bash_file ;;
zsh) zsh_file ;;
fish) fish_file ;;
*) echo "completion.sh: \"$shell\" is no shell that it knows; use bash, zsh or fish" >&2; exit 2 ;;
esac
